// Products and sums that are rounded where they are written: the sum of a product and another number would otherwise be
// formed with an unrounded one, and what is compared, or rounded to an integer, would not be what the definition says.
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

}  // namespace baracuda
