// Launches that say more than a grid and blocks.
#pragma once

#include "executor.h"

namespace baracuda {
namespace internal {

// With an attribute, or none.
template <class... Parameters, class... Values>
Status launch_with(const Executor& executor, const cudaLaunchAttribute* attribute, void (*kernel)(Parameters...),
                   dim3 blocks, unsigned threads, size_t dynamic_bytes, const Values&... values) {
  cudaLaunchAttribute attributes[1];
  if (attribute) attributes[0] = *attribute;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks, config.blockDim = dim3(threads);
  config.dynamicSmemBytes = dynamic_bytes, config.stream = executor.stream;
  config.attrs = attributes, config.numAttrs = attribute ? 1 : 0;
  cudaError_t error = cudaLaunchKernelEx(&config, kernel, Parameters(values)...);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  return launched();
}

}  // namespace internal
}  // namespace baracuda
