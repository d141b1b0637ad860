// Rounding, division with a remainder, and the bits of floats.
#pragma once

#include "functor.h"

namespace baracuda::op {

// Half to even, whatever the processor's rounding mode is.
template <class W>
BARACUDA_HD W rounded(W x) {
  return std::nearbyint(x);
}
// The remainder with the sign of x. Of integers, x where y is 0.
template <class W>
BARACUDA_HD W truncated_remainder(W x, W y) {
  if constexpr (std::is_floating_point_v<W>)
    return std::fmod(x, y);
  else if constexpr (std::is_signed_v<W>)
    return y == -1 ? W(0) : y == 0 ? x : W(x % y);
  else
    return y == 0 ? x : W(x % y);
}
// The remainder with the sign of y.
template <class W>
BARACUDA_HD W floored_remainder(W x, W y) {
  W rest = truncated_remainder(x, y);
  if constexpr (std::is_unsigned_v<W>)
    return rest;
  else
    return rest != W(0) && (rest < W(0)) != (y < W(0)) ? W(rest + y) : rest;
}
// The largest integer that is not above x / y. That of rounded x / y would be 10 for 1 / 0.1. Of integers, -1 where y
// is 0.
template <class W>
BARACUDA_HD W floored_quotient(W x, W y) {
  if constexpr (std::is_floating_point_v<W>) {
    W rest = truncated_remainder(x, y), quotient = (x - rest) / y;  // an integer, nearly
    if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
    return y == 0 ? x / y : std::nearbyint(quotient);
  } else if constexpr (std::is_signed_v<W>) {
    if (y == 0) return W(-1);
    if (y == -1) return W(-Accumulator<W>(x));
    W quotient = W(x / y);
    return quotient * y != x && (x < 0) != (y < 0) ? W(quotient - 1) : quotient;
  } else {
    return y == 0 ? W(-1) : W(x / y);
  }
}

BARACUDA_UNARY_OP(floor, std::floor(x), W(0))
BARACUDA_UNARY_OP(ceil, std::ceil(x), W(0))
BARACUDA_UNARY_OP(round, rounded(x), W(0))
BARACUDA_UNARY_OP(trunc, std::trunc(x), W(0))
BARACUDA_UNARY_OP(frac, x - std::trunc(x), d)

BARACUDA_BINARY_OP(floor_divide, floored_quotient(x, y), W(0), W(0))
BARACUDA_BINARY_OP(mod, floored_remainder(x, y), d, -(floored_quotient(x, y) * d))
BARACUDA_BINARY_OP(fmod, truncated_remainder(x, y), d, -(std::trunc(x / y) * d))
BARACUDA_BINARY_OP(copysign, std::copysign(x, y), x == 0 ? W(0) : std::signbit(x) == std::signbit(y) ? d : -d, W(0))

// In the steps of T.
template <class T>
struct nextafter : Binary<T> {
  using W = Comparable<T>;
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  BARACUDA_HD W operator()(W x, W y) const {
    if (!(x < y || x > y)) return x != x ? x : y;  // NaN, or equal
    Bits bits = bit_cast<Bits>(T(x)), sign = Bits(Bits(1) << (8 * sizeof(T) - 1));
    if (x == 0)
      bits = y > 0 ? Bits(1) : Bits(sign | 1);
    else
      bits = Bits((x < y) == (x > 0) ? bits + 1 : bits - 1);
    return W(bit_cast<T>(bits));
  }
};
// Its derivatives.
BARACUDA_BINARY_OP(nextafter_slopes, x, d, W(0))

}  // namespace baracuda::op
