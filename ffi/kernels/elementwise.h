// What elementwise ops compute of one element, in Wide: float for halves, the type itself otherwise. Conditions are
// written so that NaN comes out wherever it goes in.
//
// Functors of one array, and of an array and its cotangent, are made of the op's parameters, doubles.
#pragma once

#include "exponential.h"

namespace baracuda {

template <class T>
struct Unary {
  using Operands = Types<T>;
  using Results = Types<T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"x"};
};

// The cotangent of x; with a tangent for dy, that of the result.
template <class T>
struct UnaryBackward {
  using Operands = Types<T, T>;
  using Results = Types<T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"x", "dy"};
};

#define BARACUDA_UNARY(NAME) \
  template <class T>         \
  struct NAME : Unary<T>
#define BARACUDA_UNARY_BACKWARD(NAME) \
  template <class T>                  \
  struct NAME : UnaryBackward<T>

// ---------------------------------------------------------------------------------------------------------------------

BARACUDA_UNARY(LeakyRelu) {
  using W = Comparable<T>;
  W slope;
  explicit LeakyRelu(const double* p) : slope(W(p[0])) {}
  BARACUDA_HD W operator()(W x) const { return x > 0 ? x : slope * x; }
};

BARACUDA_UNARY_BACKWARD(LeakyReluBackward) {
  using W = Comparable<T>;
  W slope;
  explicit LeakyReluBackward(const double* p) : slope(W(p[0])) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x > 0 ? dy : slope * dy; }
};

BARACUDA_UNARY(Elu) {
  using W = Comparable<T>;
  W alpha;
  explicit Elu(const double* p) : alpha(W(p[0])) {}
  BARACUDA_HD W operator()(W x) const { return x > 0 ? x : alpha * exponential_minus_one<T>(x); }
};

BARACUDA_UNARY_BACKWARD(EluBackward) {
  using W = Comparable<T>;
  W alpha;
  explicit EluBackward(const double* p) : alpha(W(p[0])) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x > 0 ? dy : alpha * exponential<T>(x) * dy; }
};

BARACUDA_UNARY(Threshold) {
  using W = Comparable<T>;
  W threshold, value;
  explicit Threshold(const double* p) : threshold(W(p[0])), value(W(p[1])) {}
  BARACUDA_HD W operator()(W x) const { return x <= threshold ? value : x; }
};

BARACUDA_UNARY_BACKWARD(ThresholdBackward) {
  using W = Comparable<T>;
  W threshold;
  explicit ThresholdBackward(const double* p) : threshold(W(p[0])) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x <= threshold ? W(0) : dy; }
};

// The larger bound wins where the bounds cross.
BARACUDA_UNARY(Clamp) {
  using W = Comparable<T>;
  W low, high;
  Clamp(W low, W high) : low(low), high(high) {}
  explicit Clamp(const double* p) : low(W(p[0])), high(W(p[1])) {}
  BARACUDA_HD W operator()(W x) const {
    W raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

// At a bound x is inside.
BARACUDA_UNARY_BACKWARD(ClampBackward) {
  using W = Comparable<T>;
  W low, high;
  ClampBackward(W low, W high) : low(low), high(high) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x >= low && x <= high ? dy : W(0); }
};

// At a bound x is outside.
BARACUDA_UNARY_BACKWARD(HardtanhBackward) {
  using W = Comparable<T>;
  W low, high;
  explicit HardtanhBackward(const double* p) : low(W(p[0])), high(W(p[1])) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x <= low || x >= high ? W(0) : dy; }
};

BARACUDA_UNARY(Softshrink) {
  using W = Comparable<T>;
  W lambd;
  explicit Softshrink(const double* p) : lambd(W(p[0])) {}
  BARACUDA_HD W operator()(W x) const {
    if (x >= -lambd && x <= lambd) return W(0);
    return x > lambd ? x - lambd : x + lambd;
  }
};

BARACUDA_UNARY(Hardshrink) {
  using W = Comparable<T>;
  W lambd;
  explicit Hardshrink(const double* p) : lambd(W(p[0])) {}
  BARACUDA_HD W operator()(W x) const { return x >= -lambd && x <= lambd ? W(0) : x; }
};

// Of both shrinks.
BARACUDA_UNARY_BACKWARD(ShrinkBackward) {
  using W = Comparable<T>;
  W lambd;
  explicit ShrinkBackward(const double* p) : lambd(W(p[0])) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x >= -lambd && x <= lambd ? W(0) : dy; }
};

// x^n by repeated squaring.
template <class W>
BARACUDA_HD W any_power(W x, uint64_t n) {
  W result = 1;
  for (; n != 0; n >>= 1) {
    if (n & 1) result *= x;
    x *= x;
  }
  return result;
}

#ifndef __CUDACC__
// Out of line: a loop inside the loop over elements would keep that from being vectorised.
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

BARACUDA_UNARY(Powi) {
  using W = Comparable<T>;
  int64_t exponent;
  explicit Powi(const double* p) : exponent(int64_t(p[0])) {}
  BARACUDA_HD W operator()(W x) const { return integer_power(x, exponent); }
};

BARACUDA_UNARY_BACKWARD(PowiBackward) {
  using W = Comparable<T>;
  int64_t exponent;
  explicit PowiBackward(const double* p) : exponent(int64_t(p[0])) {}
  BARACUDA_HD W operator()(W x, W dy) const {
    return exponent == 0 ? W(0) : W(exponent) * integer_power(x, exponent - 1) * dy;
  }
};

BARACUDA_UNARY(Affine) {
  using W = Comparable<T>;
  W scale, shift;
  explicit Affine(const double* p) : scale(W(p[0])), shift(W(p[1])) {}
  BARACUDA_HD W operator()(W x) const { return scale * x + shift; }
};

BARACUDA_UNARY_BACKWARD(AffineBackward) {
  using W = Comparable<T>;
  W scale;
  explicit AffineBackward(const double* p) : scale(W(p[0])) {}
  BARACUDA_HD W operator()(W, W dy) const { return scale * dy; }
};

// ---------------------------------------------------------------------------------------------------------------------
// Ops with a weight, whose type P may be wider than T.

template <class W, int count>
struct Values {
  W value[count];
};

template <class T, class P>
struct Lerp {
  using Operands = Types<T, T, P>;
  using Results = Types<T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"start", "end", "weight"};
  BARACUDA_HD Wide operator()(Wide start, Wide end, Wide weight) const {
    Wide way = end - start;
    // From the nearer end, so that weights of 0 and 1 give the ends.
    return std::abs(weight) < Wide(0.5) ? start + weight * way : end - way * (1 - weight);
  }
};

template <class T, class P>
struct LerpTangent {
  using Operands = Types<T, T, P, T, T, P>;
  using Results = Types<T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"start",           "end",           "weight",
                                          "start's tangent", "end's tangent", "weight's tangent"};
  BARACUDA_HD Wide operator()(Wide start, Wide end, Wide weight, Wide of_start, Wide of_end, Wide of_weight) const {
    return (1 - weight) * of_start + weight * of_end + (end - start) * of_weight;
  }
};

template <class T, class P>
struct LerpBackward {
  using Operands = Types<T, P>;
  using Results = Types<T, T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"dy", "weight"};
  BARACUDA_HD Values<Wide, 2> operator()(Wide dy, Wide weight) const { return {{(1 - weight) * dy, weight * dy}}; }
};

template <class T, class P>
struct LerpBackwardWeight {
  using Operands = Types<T, T, T>;
  using Results = Types<P>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"start", "end", "dy"};
  BARACUDA_HD Wide operator()(Wide start, Wide end, Wide dy) const { return (end - start) * dy; }
};

template <class T, class P>
struct Prelu {
  using Operands = Types<T, P>;
  using Results = Types<T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"x", "weight"};
  BARACUDA_HD Wide operator()(Wide x, Wide weight) const { return x > 0 ? x : weight * x; }
};

template <class T, class P>
struct PreluTangent {
  using Operands = Types<T, P, T, P>;
  using Results = Types<T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"x", "weight", "x's tangent", "weight's tangent"};
  BARACUDA_HD Wide operator()(Wide x, Wide weight, Wide of_x, Wide of_weight) const {
    return x > 0 ? of_x : weight * of_x + x * of_weight;
  }
};

template <class T, class P>
struct PreluBackward {
  using Operands = Types<T, P, T>;
  using Results = Types<T>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"x", "weight", "dy"};
  BARACUDA_HD Wide operator()(Wide x, Wide weight, Wide dy) const { return x > 0 ? dy : weight * dy; }
};

template <class T, class P>
struct PreluBackwardWeight {
  using Operands = Types<T, T>;
  using Results = Types<P>;
  using Wide = Comparable<T>;
  static constexpr const char* names[] = {"x", "dy"};
  BARACUDA_HD Wide operator()(Wide x, Wide dy) const { return x > 0 ? Wide(0) : x * dy; }
};

}  // namespace baracuda
