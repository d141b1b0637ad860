// Floats of 8 bits as pairs of float16, which has all of them. A word has four, byte 0 in the lowest bits.
#pragma once

#include "../kernels/float8.h"

namespace baracuda {
namespace internal {

// Of 4 bits of exponent the conversion is an instruction that takes two neighbors.
__device__ inline uint32_t half_pair(uint16_t two) {
  __half2_raw pair = __nv_cvt_fp8x2_to_halfraw2(two, __NV_E4M3);
  return uint32_t(pair.x) | uint32_t(pair.y) << 16;
}

// The bytes 0 and 1, and the bytes 2 and 3.
template <class Stored>
__device__ inline void neighbors(uint32_t (&pair)[2], uint32_t word) {
  if constexpr (std::is_same_v<Stored, Float8E5M2>) {
    pair[0] = __byte_perm(word, 0, 0x1404), pair[1] = __byte_perm(word, 0, 0x3424);
  } else {
    pair[0] = half_pair(uint16_t(word)), pair[1] = half_pair(uint16_t(word >> 16));
  }
}

// The bytes 0 and 2, and the bytes 1 and 3.
template <class Stored>
__device__ inline void alternate(uint32_t (&pair)[2], uint32_t word) {
  if constexpr (std::is_same_v<Stored, Float8E5M2>) {
    pair[0] = __byte_perm(word, 0, 0x2404), pair[1] = __byte_perm(word, 0, 0x3414);
  } else {
    neighbors<Stored>(pair, __byte_perm(word, 0, 0x3120));
  }
}

}  // namespace internal
}  // namespace baracuda
