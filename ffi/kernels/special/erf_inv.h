// The inverse of the error function: polynomials of w = -log(1 - x^2) and of sqrt(w), an idea of Giles's (2010).
#pragma once

#include "elementary.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T erfinv(T x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double z = std::abs(double(x)), w = -logarithm_for<T>((1 - z) * (1 + z)), y;
  if constexpr (sizeof(T) == 4) {
    double near = z * series::erfinv_center<T>(w - 3), far = series::erfinv_tail<T>(std::sqrt(w) - 3);
    y = w < 5 ? near : far;
  } else if (w < 6.25) {
    y = z * series::erfinv_center<T>(w - 3);
  } else {
    double r = std::sqrt(w);
    y = r < 4 ? series::erfinv_tail<T>(r - 3) : series::erfinv_far<T>(r - 5);
  }
  return std::copysign(T(z == 1 ? infinity : y), x);
}

}  // namespace baracuda::special
