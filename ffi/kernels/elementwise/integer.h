// Bits of integers. A shift by the width of the type or more, or by less than 0, leaves the sign's bits or none.
#pragma once

#include "functor.h"

namespace baracuda::op {

template <class W>
inline constexpr int width = 8 * int(sizeof(W));

// As many as in W, whose bits begin a longer integer's.
template <class W>
BARACUDA_HD uint64_t bits_of(W x) {
  return uint64_t(std::make_unsigned_t<W>(x));
}
BARACUDA_HD int ones(uint64_t x) {
#ifdef __CUDA_ARCH__
  return __popcll(x);
#else
  return __builtin_popcountll(x);
#endif
}
BARACUDA_HD int leading_zeros(uint64_t x) {
#ifdef __CUDA_ARCH__
  return __clzll(int64_t(x));
#else
  return x == 0 ? 64 : __builtin_clzll(x);
#endif
}

template <class W>
BARACUDA_HD W inverted(W x) {
  if constexpr (std::is_same_v<W, bool>)
    return !x;
  else
    return W(~x);
}
template <class W>
BARACUDA_HD W shifted_left(W x, W count) {
  return bits_of(count) < width<W> ? W(bits_of(x) << bits_of(count)) : W(0);
}
template <class W>
BARACUDA_HD W shifted_right(W x, W count) {
  if constexpr (std::is_unsigned_v<W>)
    return bits_of(count) < width<W> ? W(x >> count) : W(0);
  else
    return bits_of(count) < width<W> ? W(x >> count) : W(x < 0 ? -1 : 0);
}

BARACUDA_UNARY_VALUE(bitwise_not, T, inverted(x))
BARACUDA_UNARY_VALUE(population_count, T, W(ones(bits_of(x))))
BARACUDA_UNARY_VALUE(clz, T, W(leading_zeros(bits_of(x)) - (64 - width<W>)))
BARACUDA_UNARY_VALUE(ctz, T, x == 0 ? W(width<W>) : W(ones((bits_of(x) & -bits_of(x)) - 1)))
BARACUDA_BINARY_VALUE(bitwise_and, T, W(x& y))
BARACUDA_BINARY_VALUE(bitwise_or, T, W(x | y))
BARACUDA_BINARY_VALUE(bitwise_xor, T, W(x ^ y))
BARACUDA_BINARY_VALUE(left_shift, T, shifted_left(x, y))
BARACUDA_BINARY_VALUE(right_shift, T, shifted_right(x, y))

// Of bool.
BARACUDA_UNARY_VALUE(logical_not, T, !x)
BARACUDA_BINARY_VALUE(logical_and, T, x&& y)
BARACUDA_BINARY_VALUE(logical_or, T, x || y)
BARACUDA_BINARY_VALUE(logical_xor, T, x != y)

}  // namespace baracuda::op
