// The normal distribution's density and distribution function, without cancellation in the lower tail.
#pragma once

#include "erf.h"

namespace baracuda::special {

// The distribution function at -|x| is ratio e^exponent; it and the density are 0 from |x| = 39 on, in float from 14.9.
template <class T>
struct NormalTail {
  double size, exponent, rest, ratio;

  explicit BARACUDA_HD NormalTail(T x) {
    constexpr double limit = sizeof(T) == 8 ? 39 : 14.9;
    size = std::abs(double(x));
    size = size > limit ? limit : size;
    Pair square = exact_product(size, size);
    exponent = -0.5 * square.high, rest = sizeof(T) == 8 ? -0.5 * square.low : 0;
    double divisor = 1 + 1.5 * size;
    if constexpr (sizeof(T) == 4) {
      double inverse = 1 / ((size + 4) * divisor);  // one division is half of two
      ratio = series::scaled_normal_cdf<T>((size - 4) * divisor * inverse) * ((size + 4) * inverse);
    } else {
      ratio = series::scaled_normal_cdf<T>((size - 4) / (size + 4)) / ((1 - rest * divisor) + 1.5 * size);
    }
  }

  // factor e^exponent, which where it is normal may have an exponential that is not.
  BARACUDA_HD double scaled(double factor) const {
    if constexpr (sizeof(T) == 8) {
      if (size > 37) {
        double root = exponential_for<T>(0.5 * exponent);
        return (factor * root) * root;
      }
    }
    return factor * exponential_for<T>(exponent);
  }
};

template <class T>
BARACUDA_HD double normal_cdf_for(T x) {
  if constexpr (sizeof(T) == 8) {
    if (std::abs(x) < 0.6) return 0.5 + 0.5 * std::erf(x * 0x1.6a09e667f3bcdp-1);
  }
  NormalTail<T> tail(x);
  double y = tail.scaled(tail.ratio);
  return x > 0 ? 1 - y : y;
}

template <class T>
BARACUDA_HD T normal_cdf(T x) {
  return T(normal_cdf_for(x));
}

}  // namespace baracuda::special
