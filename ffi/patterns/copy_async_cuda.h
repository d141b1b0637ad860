// Copies of 16 bytes from memory to shared memory that go on while the thread computes. They are committed and waited
// for by the functions of cuda_pipeline.h, whose own copy takes a branch for each number of bytes.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

namespace baracuda {
namespace internal {

// Of the 16 bytes at `from` the first `count` are read; the others become 0. Both addresses are multiples of 16.
__device__ inline void copy_async(uint32_t to, const void* from, int count) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(count)
               : "memory");
}
__device__ inline void copy_async(void* to, const void* from, int count) {
  copy_async(uint32_t(__cvta_generic_to_shared(to)), from, count);
}

__device__ inline void copy_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}

// The same, where the neighbors of 128 bytes are read soon, by whomever: they come to the second-level cache.
__device__ inline void copy_async_with_neighbors(void* to, const void* from, int count) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(uint32_t(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from)), "r"(count)
               : "memory");
}

// Four bytes, or zeros where there are none to read.
__device__ inline void copy_async_word(void* to, const void* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(uint32_t(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0)
               : "memory");
}

}  // namespace internal
}  // namespace baracuda
