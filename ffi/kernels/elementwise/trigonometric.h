// Circular and hyperbolic functions, and their inverses.
#pragma once

#include "functor.h"
#include "math.h"

namespace baracuda::op {

// 1 / cosh(x)^2, without the difference of 1 - tanh(x)^2.
template <class T>
BARACUDA_HD Comparable<T> sech_squared(Comparable<T> x) {
  Comparable<T> e = math::exp<T>(-std::abs(x)), c = 2 * e / (1 + e * e);
  return c * c;
}
// x / (x^2 + y^2), 0 at the origin.
template <class T>
BARACUDA_HD Comparable<T> over_squares(Comparable<T> x, Comparable<T> y) {
  Comparable<T> size = math::hypot<T>(x, y);
  return size == 0 ? size : x / size / size;
}

BARACUDA_UNARY_OP(sin, std::sin(x), std::cos(x) * d)
BARACUDA_UNARY_OP(cos, std::cos(x), -std::sin(x) * d)
BARACUDA_UNARY_OP(tan, std::tan(x), (1 + std::tan(x) * std::tan(x)) * d)
BARACUDA_UNARY_OP(asin, std::asin(x), d / std::sqrt((1 - x) * (1 + x)))
BARACUDA_UNARY_OP(acos, std::acos(x), -d / std::sqrt((1 - x) * (1 + x)))
BARACUDA_UNARY_OP(atan, std::atan(x), d / (1 + x * x))
BARACUDA_UNARY_OP(sinh, std::sinh(x), std::cosh(x) * d)
BARACUDA_UNARY_OP(cosh, std::cosh(x), std::sinh(x) * d)
BARACUDA_UNARY_OP(tanh, math::tanh<T>(x), sech_squared<T>(x) * d)
BARACUDA_UNARY_OP(asinh, std::asinh(x), d / math::hypot<T>(W(1), x))
BARACUDA_UNARY_OP(acosh, std::acosh(x), d / std::sqrt(x - 1) / std::sqrt(x + 1))
BARACUDA_UNARY_OP(atanh, std::atanh(x), d / ((1 - x) * (1 + x)))

// The angle of the point (y, x).
BARACUDA_BINARY_OP(atan2, std::atan2(x, y), over_squares<T>(y, x) * d, -over_squares<T>(x, y) * d)

}  // namespace baracuda::op
