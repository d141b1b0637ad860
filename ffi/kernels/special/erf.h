// The error function, and its complement without cancellation.
#pragma once

#include "elementary.h"

namespace baracuda::special {

// e^(x^2) erfc(x) (1 + rest) for x >= 0 and a small rest, as a rational function of x whose form is Shepherd and
// Laframboise's (1981).
template <class T>
BARACUDA_HD double scaled_erfc(double x, double rest = 0) {
  double divisor = 1 + 2 * x;
  if constexpr (sizeof(T) == 4) {
    double inverse = 1 / ((x + 3) * divisor);  // one division is half of two
    return series::scaled_erfc<T>((x - 3) * divisor * inverse) * ((x + 3) * inverse);
  }
  return series::scaled_erfc<T>((x - 3) / (x + 3)) / ((1 - rest * divisor) + 2 * x);
}

template <class T>
BARACUDA_HD T erfc(T x) {
  double z = std::abs(double(x));
  if constexpr (sizeof(T) == 8) {
    if (x < 0.4) return 1 - std::erf(x);
  }
  constexpr double zero = sizeof(T) == 8 ? 27.3 : 10.5;  // where the result is 0
  z = z > zero ? zero : z;
  Pair square = exact_product(z, z);
  double y = exponential_for<T>(-square.high) * scaled_erfc<T>(z, -square.low);
  return T(x < 0 ? 2 - y : y);
}

template <class T>
BARACUDA_HD T erf(T x) {
#ifndef __CUDACC__
  if constexpr (sizeof(T) == 4) {
    double z = std::abs(double(x)), q = z * z;
    z = z > 10 ? 10 : z;
    double far = 1 - exponential_for<T>(-z * z) * scaled_erfc<T>(z), near = z * series::erf<T>(q);
    return std::copysign(T(z < 1 ? near : far), x);
  }
#endif
  return std::erf(x);
}

}  // namespace baracuda::special
