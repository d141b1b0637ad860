// The bits that any lane of a warp has.
#pragma once

#include <cstdint>

namespace baracuda {
namespace internal {

__device__ inline uint32_t or_of_warp(uint32_t bits) { return __reduce_or_sync(~0u, bits); }
__device__ inline uint64_t or_of_warp(uint64_t bits) {
  return uint64_t(or_of_warp(uint32_t(bits >> 32))) << 32 | or_of_warp(uint32_t(bits));
}

}  // namespace internal
}  // namespace baracuda
