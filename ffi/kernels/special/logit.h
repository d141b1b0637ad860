// log(x / (1 - x)).
#pragma once

#include "elementary.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T logit(T x) {
  double p = x;
  if constexpr (sizeof(T) == 8) {
    // Near the root the odds less 1, whose numerator is exact, have more bits than the odds.
    if (p > 0.3 && p < 0.75) return std::log1p((2 * p - 1) / (1 - p));
  }
  return T(logarithm_for<T>(p / (1 - p)));
}

}  // namespace baracuda::special
