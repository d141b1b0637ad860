// e^x - 1.
#pragma once

#include "elementary.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T expm1(T x) {
#ifndef __CUDACC__
  if constexpr (sizeof(T) == 4) {
    T y = T(exponential_minus_one_for<T>(x));
    return x == 0 ? x : y;
  }
#endif
  return std::expm1(x);
}

}  // namespace baracuda::special
