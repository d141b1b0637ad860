// Products that are rounded where they are written: their sum with another number would otherwise be formed with an
// unrounded one, and what is compared, or rounded to an integer, would not be what the definition says.
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

}  // namespace baracuda
