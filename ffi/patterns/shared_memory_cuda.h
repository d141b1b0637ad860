// Kernels that want much shared memory.
#pragma once

#include "device_cuda.h"
#include "executor.h"

namespace baracuda {
namespace internal {

// The most shared memory that a block may have.
inline Status most_shared_memory(int& bytes) {
  cudaError_t error = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, bytes);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

// Lets the kernel have so many bytes a block.
template <class Kernel>
Status allow_dynamic_memory(Kernel kernel, int64_t bytes) {
  // A kernel has 48 KB without asking, of which its own variables take part: none has 16 KB of them.
  constexpr int64_t by_default = 32 << 10;
  if (bytes <= by_default) return {};
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

// The same, and as many blocks on a multiprocessor as there is shared memory for: by default part of that serves as
// cache.
template <class Kernel>
Status allow_shared_memory(Kernel kernel, int64_t bytes) {
  if (Status status = allow_dynamic_memory(kernel, bytes); !status.ok()) return status;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

}  // namespace internal
}  // namespace baracuda
