// Products, sums and numbers that are rounded where they are written: the sum of a product and another number would
// otherwise be formed with an unrounded one, and what is compared, or rounded to an integer, would not be what the
// definition says.
#pragma once

#include "number.h"

namespace baracuda {

template <class Sum>
BARACUDA_HD Sum rounded_product(Sum a, Sum b) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Sum) == 8)
    return __dmul_rn(a, b);
  else
    return __fmul_rn(a, b);
#else
  return a * b;  // in files that are compiled without contraction
#endif
}
BARACUDA_HD float rounded_sum(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

// x, rounded to T. A bfloat16 alone takes a GPU a slow instruction; one that is the upper half of a float does not.
template <class T>
BARACUDA_HD Accumulator<T> rounded_to(Accumulator<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, BFloat16>) {
    uint32_t bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.f));
    return bit_cast<float>(bits);
  }
#endif
  return T(x);
}

}  // namespace baracuda
