// The larger ones of one or two numbers that a word has.
#pragma once

#include "../kernels/number.h"

namespace baracuda {
namespace internal {

// NaN if any is NaN.
template <class T>
__device__ uint32_t larger_in_word(uint32_t a, uint32_t b) {
  if constexpr (std::is_same_v<T, Half>)
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  else if constexpr (std::is_same_v<T, BFloat16>)
    asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  else
    asm("max.NaN.f32 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}

}  // namespace internal
}  // namespace baracuda
