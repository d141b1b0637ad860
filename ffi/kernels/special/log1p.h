// log(1 + x).
#pragma once

#include "elementary.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T log1p(T x) {
#ifndef __CUDACC__
  if constexpr (sizeof(T) == 4) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    T y = T(logarithm_of_one_and_for<T>(x));
    return x > -1 && x < infinity ? y : x == -1 ? -infinity : x > 0 ? x : std::numeric_limits<T>::quiet_NaN();
  }
#endif
  return std::log1p(x);
}

}  // namespace baracuda::special
