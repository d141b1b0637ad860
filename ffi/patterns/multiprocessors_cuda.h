// How many blocks keep a device busy.
#pragma once

#include "executor.h"

namespace baracuda {
namespace internal {

// 0 if the device does not say.
inline int multiprocessors_of_device() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  return cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess ? count : 0;
}

}  // namespace internal
}  // namespace baracuda
