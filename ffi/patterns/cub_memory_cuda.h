// Calls of CUB's algorithms, which ask for memory.
#pragma once

#include "executor.h"

namespace baracuda {
namespace internal {

// Calls CUB, `run(memory, bytes)`, with what is left of the workspace.
template <class Run>
Status with_memory(Executor executor, const Run& run) {
  size_t bytes = 0;
  cudaError_t error = run(nullptr, bytes);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  void* memory = executor.scratch<char>(int64_t(bytes));
  if (!memory) return small_workspace;
  error = run(memory, bytes);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

}  // namespace internal
}  // namespace baracuda
