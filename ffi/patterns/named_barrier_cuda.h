// Barriers between some warps of a block, by number; __syncthreads is 0. `threads` is how many take part, those that
// wait and those that only arrive. What these wrote is seen by those that waited.
#pragma once

namespace baracuda {
namespace internal {

__device__ inline void wait_at_barrier(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ inline void arrive_at_barrier(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace internal
}  // namespace baracuda
