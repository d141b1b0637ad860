// What the device at hand has.
#pragma once

#include "executor.h"

namespace baracuda {
namespace internal {

inline cudaError_t device_attribute(cudaDeviceAttr attribute, int& value) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  return error == cudaSuccess ? cudaDeviceGetAttribute(&value, attribute, device) : error;
}

// 0 if the device does not say.
inline int device_attribute(cudaDeviceAttr attribute) {
  int value = 0;
  return device_attribute(attribute, value) == cudaSuccess ? value : 0;
}

inline int multiprocessors_of_device() { return device_attribute(cudaDevAttrMultiProcessorCount); }

// Of its compute capability, the part before the point.
inline int major_of_device() { return device_attribute(cudaDevAttrComputeCapabilityMajor); }

}  // namespace internal
}  // namespace baracuda
