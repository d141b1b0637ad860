// Integer powers, and scale and shift.
#pragma once

#include "functor.h"

namespace baracuda::op {

// x^n by repeated squaring.
template <class W>
BARACUDA_HD W any_power(W x, uint64_t n) {
  W result = W(1);
  for (; n != 0; n >>= 1) {
    if (n & 1) result = result * x;
    x = x * x;
  }
  return result;
}

#ifndef __CUDACC__
// Out of line: a loop inside the loop over elements would keep that from being vectorized.
template <class W>
__attribute__((noinline)) W large_power(W x, uint64_t n) {
  return any_power(x, n);
}
// The same, for n < 16.
template <class W>
BARACUDA_HD W small_power(W x, uint64_t n) {
  W square = x * x, fourth = square * square, eighth = fourth * fourth;
  return (n & 1 ? x : W(1)) * (n & 2 ? square : W(1)) * (n & 4 ? fourth : W(1)) * (n & 8 ? eighth : W(1));
}
#endif

// What the usual exponents come to is written out.
template <class W>
BARACUDA_HD W integer_power(W x, int64_t n) {
  uint64_t size = uint64_t(n < 0 ? -n : n);
#ifdef __CUDACC__
  if (n == 1) return x;
  if (n == 2) return x * x;
  if (n == 3) return x * (x * x);
  W result = any_power(x, size);
#else
  W result = size < 16 ? small_power(x, size) : large_power(x, size);
#endif
  return n < 0 ? 1 / result : result;
}

BARACUDA_UNARY(powi) {
  using W = Comparable<T>;
  int64_t exponent;
  explicit powi(const Parameter* p) : exponent(int64_t(p[0].number())) {}
  BARACUDA_HD W operator()(W x) const { return integer_power(x, exponent); }
};

BARACUDA_UNARY_BACKWARD(powi_backward) {
  using W = Comparable<T>;
  int64_t exponent;
  explicit powi_backward(const Parameter* p) : exponent(int64_t(p[0].number())) {}
  BARACUDA_HD W operator()(W x, W dy) const {
    return exponent == 0 ? W(0) : W(exponent) * integer_power(x, exponent - 1) * dy;
  }
};

BARACUDA_UNARY(affine) {
  using W = Comparable<T>;
  W scale, shift;
  explicit affine(const Parameter* p) : scale(W(p[0].number())), shift(W(p[1].number())) {}
  BARACUDA_HD W operator()(W x) const { return scale * x + shift; }
};

BARACUDA_UNARY_BACKWARD(affine_backward) {
  using W = Comparable<T>;
  W scale;
  explicit affine_backward(const Parameter* p) : scale(W(p[0].number())) {}
  BARACUDA_HD W operator()(W, W dy) const { return scale * dy; }
};

}  // namespace baracuda::op
