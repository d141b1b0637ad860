// tanh(x) = (1 - e^(-2x)) / (1 + e^(-2x)).
#pragma once

#include "elementary.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T tanh(T x) {
#ifndef __CUDACC__
  if constexpr (sizeof(T) == 4) {
    double y = exponential_minus_one_for<T>(-2 * std::abs(double(x)));
    return std::copysign(T(y / (2 + y)), x);
  }
#endif
  return std::tanh(x);
}

}  // namespace baracuda::special
