// Kernels that want much shared memory.
#pragma once

#include "executor.h"

namespace baracuda {
namespace internal {

// Lets the kernel have so many bytes a block, and as many blocks on a multiprocessor as there is shared memory for: by
// default part of that serves as cache.
template <class Kernel>
Status allow_shared_memory(Kernel kernel, int64_t bytes) {
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
  if (error == cudaSuccess)
    error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

}  // namespace internal
}  // namespace baracuda
