// The position of a digit among the equal ones before it: the core of stable radix sorts.
#pragma once

#include <cstdint>

namespace baracuda {
namespace internal {

// How many keys of the warp with this digit came before, and counts this one. `masks` are zero before and after.
__device__ inline uint16_t rank_in_warp(uint16_t* counts, uint32_t* masks, uint32_t digit) {
  uint32_t lane = threadIdx.x % 32;
  atomicOr(masks + digit, 1u << lane);
  __syncwarp();
  uint32_t same = masks[digit];
  uint32_t lower = same & ((1u << lane) - 1);
  uint16_t before = counts[digit];
  __syncwarp();
  if (lower == 0) {
    counts[digit] = before + __popc(same);
    masks[digit] = 0;
  }
  __syncwarp();
  return before + __popc(lower);
}

}  // namespace internal
}  // namespace baracuda
