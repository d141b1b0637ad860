// The inverse of a number of elements.
#pragma once

#include "number.h"

namespace baracuda {

// 1 / x, of an x that is no more than counts are. CUDA's division has a branch and a call for x that is subnormal or
// large, which would take registers from what is on its way. One step of Newton's rule rounds what the instruction
// gives.
template <class Wide>
BARACUDA_HD Wide inverse_of_count(Wide x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Wide) == 4) {
    Wide near = __fdividef(1.0f, x);
    return fmaf(near, fmaf(-x, near, 1.0f), near);
  } else {
    Wide near = __fdividef(1.0f, float(x));
    near = fma(near, fma(-x, near, 1.0), near);
    return fma(near, fma(-x, near, 1.0), near);
  }
#else
  return 1 / x;
#endif
}

}  // namespace baracuda
