// Sums, products, quotients and roots. Integers wrap around.
#pragma once

#include "functor.h"
#include "math.h"

namespace baracuda::op {

// In unsigned arithmetic, where an int is not overflown.
template <class W>
BARACUDA_HD W product(W x, W y) {
  return W(Accumulator<W>(x) * Accumulator<W>(y));
}
template <class W>
BARACUDA_HD W negated(W x) {
  return W(-Accumulator<W>(x));
}
template <class W>
BARACUDA_HD W signum(W x) {
  if constexpr (std::is_unsigned_v<W>)
    return W(x != 0);
  else
    return x > W(0) ? W(1) : x < W(0) ? W(-1) : x;
}
// The derivative of a root of 0 is infinite; no cotangent is nothing still.
template <class W>
BARACUDA_HD W over(W d, W divisor) {
  return d == 0 && divisor == 0 ? W(0) : d / divisor;
}

// x / sqrt(x^2 + y^2), the derivative of the root by x: 0 at the origin.
template <class T>
BARACUDA_HD Comparable<T> part_of_hypot(Comparable<T> x, Comparable<T> y) {
  Comparable<T> size = math::hypot<T>(x, y);
  return size == 0 ? size : x / size;
}

BARACUDA_UNARY_OP(neg, negated(x), -d)
BARACUDA_UNARY_OP(abs, x > 0 ? x : x < 0 ? negated(x) : x == 0 ? W(0) : x, x > 0 ? d : x < 0 ? -d : x == 0 ? W(0) : x)
BARACUDA_UNARY_OP(sign, signum(x), W(0))
BARACUDA_UNARY_OP(square, product(x, x), 2 * x * d)
BARACUDA_UNARY_OP(cube, product(x, product(x, x)), 3 * (x * x) * d)
BARACUDA_UNARY_OP(reciprocal, 1 / x, -(d / x) / x)
BARACUDA_UNARY_OP(sqrt, std::sqrt(x), over(d, 2 * std::sqrt(x)))
BARACUDA_UNARY_OP(rsqrt, 1 / std::sqrt(x), W(-0.5) * d / x / std::sqrt(x))
BARACUDA_UNARY_OP(cbrt, math::cbrt<T>(x), over(d, 3 * math::cbrt<T>(x) * math::cbrt<T>(x)))

BARACUDA_BINARY_OP(add, W(Accumulator<W>(x) + Accumulator<W>(y)), d, d)
BARACUDA_BINARY_OP(sub, W(Accumulator<W>(x) - Accumulator<W>(y)), d, -d)
BARACUDA_BINARY_OP(mul, product(x, y), d* y, d* x)
BARACUDA_BINARY_OP(div, x / y, d / y, -(d / y) * (x / y))
BARACUDA_BINARY_OP(hypot, math::hypot<T>(x, y), part_of_hypot<T>(x, y) * d, part_of_hypot<T>(y, x) * d)

}  // namespace baracuda::op
