// x tanh(log(1 + e^x)) = x n / (n + 2), where n = e^x (e^x + 2), and its slope. Where x > 0 both are divided by powers
// of e^x, which would overflow.
#pragma once

#include "elementary.h"

namespace baracuda::special {

// factor e^x: the root is normal where e^x is not, but the product may be.
BARACUDA_HD double mish_tail(double factor, double x) {
  double root = std::exp(0.5 * x);
  return (factor * root) * root;
}

template <class T>
BARACUDA_HD T mish(T x) {
  if constexpr (sizeof(T) == 8) {
    if (x < -700) return mish_tail(x < -1500 ? -1500 : x, x);  // 0 times infinity would be NaN
  }
  double z = x, e = exponential_for<T>(-std::abs(z)), n = x > 0 ? 1 + 2 * e : e * (e + 2);
  double ratio = n / (n + (x > 0 ? 2 * (e * e) : 2));
  return T((z < -800 ? -800 : z) * ratio);
}

template <class T>
BARACUDA_HD T mish_slope(T x) {
  if constexpr (sizeof(T) == 8) {
    if (x < -700) return mish_tail(1 + (x < -1500 ? -1500 : x), x);
  }
  double z = x, e = exponential_for<T>(-std::abs(z));
  z = z < -800 ? -800 : z > 800 ? 800 : z;
  // Below 0, both divided by 4.
  double below = e * (1 + (z + e * ((1.5 + z) + e * (1 + 0.25 * e))));
  double square = 1 + e * (2 + e * (2 + e * (1 + 0.25 * e)));
  double n = 1 + 2 * e, whole = n + 2 * (e * e), above = n * whole + 4 * z * (e * e) * (1 + e);
  double far = (x > 0 ? above : below) / (x > 0 ? whole * whole : square);
  double t = (double(x) - series::mish_slope_root) - series::mish_slope_root_rest;
  return T(std::abs(t) < 1 ? t * series::mish_slope<T>(t) : far);
}

}  // namespace baracuda::special
