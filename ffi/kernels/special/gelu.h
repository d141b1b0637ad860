// x Phi(x), its tanh flavor x (1 + tanh(u)) / 2 = x / (1 + e^(-2u)), where u = sqrt(2 / pi) (x + 0.044715 x^3), and
// the slopes of both, which near their root are a polynomial times the distance from it.
#pragma once

#include "normal_cdf.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T gelu(T x) {
  if constexpr (sizeof(T) == 8) {
    if (std::abs(x) < 0.6) return x * normal_cdf_for(x);
  }
  NormalTail<T> tail(x);
  double below = tail.scaled(tail.size * tail.ratio);
  return T(x >= 0 ? x - below : -below);
}

template <class T>
BARACUDA_HD T gelu_slope(T x) {
  NormalTail<T> tail(x);
  constexpr double factor = 0x1.9884533d43651p-2;  // 1 / sqrt(2 pi)
  double density = tail.size * factor, below = tail.scaled(tail.ratio - (density + density * tail.rest));
  double t = (double(x) - series::gelu_slope_root) - series::gelu_slope_root_rest;
  double near = t * series::gelu_slope<T>(t), far = x > 0 ? 1 - below : below;
  return T(std::abs(t) < 1 ? near : far);
}

// 2|u|, and its derivative times |x|: in double to more than a double has, since e^(-2|u|)'s relative error is 2u's
// absolute one, and the slope is a difference.
template <class T>
BARACUDA_HD Pair odd_cubic(double x, Pair a, Pair b) {
  if constexpr (sizeof(T) == 8) return (exact_product(x, x) * b + a) * x;
  return {x * (a.high + b.high * (x * x)), 0};
}
template <class T>
BARACUDA_HD Pair gelu_tanh_twice(double size) {
  constexpr Pair a = {0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54}, b = {0x1.2444f2a4d8b4bp-4, -0x1.6c843a29d1c70p-61};
  return odd_cubic<T>(size, a, b);
}
template <class T>
BARACUDA_HD Pair gelu_tanh_twice_slope(double size) {
  constexpr Pair a = {0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54}, b = {0x1.b6676bf7450f0p-3, 0x1.bba7351828aabp-57};
  return odd_cubic<T>(size, a, b);
}

// factor e^-twice: its root is normal where it is not, but the product may be.
BARACUDA_HD double gelu_tanh_tail(double factor, Pair twice) {
  double root = std::exp(-0.5 * twice.high);
  return ((factor - factor * twice.low) * root) * root;
}

template <class T>
BARACUDA_HD T gelu_tanh(T x) {
  double size = std::abs(double(x));
  size = size > 24 ? 24 : size;  // where the result is 0 or x
  Pair twice = gelu_tanh_twice<T>(size);
  if constexpr (sizeof(T) == 8) {
    if (x < -21) return gelu_tanh_tail(-size, twice);
  }
  double e = exponential_for<T>(-twice);
  return T((x < 0 ? -size * e : double(x)) / (1 + e));
}

template <class T>
BARACUDA_HD T gelu_tanh_slope(T x) {
  double size = std::abs(double(x));
  size = size > 24 ? 24 : size;
  Pair twice = gelu_tanh_twice<T>(size), slope = gelu_tanh_twice_slope<T>(size);
  if constexpr (sizeof(T) == 8) {
    if (x < -21) return gelu_tanh_tail(1 - slope.high, twice);
  }
  double e = exponential_for<T>(-twice), square = 1 + e * (2 + e);
  double below = e * (((1 - slope.high) + (e - slope.low)) / square), far = x > 0 ? 1 - below : below;
  double t = (double(x) - series::gelu_tanh_slope_root) - series::gelu_tanh_slope_root_rest;
  return T(std::abs(t) < 0.5 ? t * series::gelu_tanh_slope<T>(t) : far);
}

}  // namespace baracuda::special
