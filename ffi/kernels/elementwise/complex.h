// Ops of complex numbers. As in JAX, what a cotangent becomes is its product with the derivative, which is not
// conjugated.
#pragma once

#include "../holomorphic.h"
#include "functor.h"
#include "power.h"

namespace baracuda::op::complex {

// In which nothing cancels.
template <class T>
BARACUDA_HD Complex<T> squared(Complex<T> x) {
  return Complex<T>((x.real - x.imag) * (x.real + x.imag), 2 * x.real * x.imag);
}
// By quarters where a sum of two large products would overflow. By 0 the parts are divided, as in NumPy; by an infinity
// what is finite is 0. Free of branches, so that loops vectorize.
template <class T>
BARACUDA_HD Complex<T> quotient(Complex<T> x, Complex<T> y) {
  constexpr T most = std::numeric_limits<T>::max(), large = most / 4;
  T size_of_x = std::abs(x.real) > std::abs(x.imag) ? std::abs(x.real) : std::abs(x.imag);
  T size_of_y = std::abs(y.real) > std::abs(y.imag) ? std::abs(y.real) : std::abs(y.imag);
  T scale = ((size_of_x > large) | (size_of_y > large)) ? T(0.25) : T(1), zero = std::abs(y.real);
  Complex<T> z = (scale * x) / (scale * y);
  bool by_zero = (y.real == 0) & (y.imag == 0), vanishes = (size_of_y > most) & (size_of_x <= most);
  auto part = [&](T x, T z) { return vanishes ? T(0) : by_zero ? x / zero : z; };
  return Complex<T>(part(x.real, z.real), part(x.imag, z.imag));
}
// The derivative of a root of 0 is infinite; no cotangent is nothing still.
template <class W>
BARACUDA_HD W over(W d, W divisor) {
  return d == W(0) && divisor == W(0) ? W(0) : quotient(d, divisor);
}

inline constexpr double ln_2 = 0x1.62e42fefa39efp-1, ln_10 = 0x1.26bb1bbb55516p1;

BARACUDA_UNARY_OP(neg, -x, -d)
BARACUDA_UNARY_OP(square, squared(x), 2 * x * d)
BARACUDA_UNARY_OP(cube, squared(x) * x, 3 * squared(x) * d)
BARACUDA_UNARY_OP(reciprocal, quotient(W(1), x), -quotient(quotient(d, x), x))
BARACUDA_UNARY_OP(sqrt, holomorphic::sqrt(x), over(d, 2 * holomorphic::sqrt(x)))
BARACUDA_UNARY_OP(rsqrt, quotient(W(1), holomorphic::sqrt(x)), -0.5 * quotient(quotient(d, x), holomorphic::sqrt(x)))

BARACUDA_UNARY_OP(exp, holomorphic::exp(x), holomorphic::exp(x) * d)
BARACUDA_UNARY_OP(exp2, holomorphic::exp2(x), ln_2* holomorphic::exp2(x) * d)
BARACUDA_UNARY_OP(expm1, holomorphic::expm1(x), holomorphic::exp(x) * d)
BARACUDA_UNARY_OP(log, holomorphic::log(x), quotient(d, x))
BARACUDA_UNARY_OP(log2, (1 / ln_2) * holomorphic::log(x), quotient(d, ln_2* x))
BARACUDA_UNARY_OP(log10, (1 / ln_10) * holomorphic::log(x), quotient(d, ln_10* x))
BARACUDA_UNARY_OP(log1p, holomorphic::log1p(x), quotient(d, W(1) + x))
BARACUDA_UNARY_OP(sigmoid, holomorphic::sigmoid(x), holomorphic::sigmoid_slope(x) * d)

BARACUDA_UNARY_OP(sin, holomorphic::sin(x), holomorphic::cos(x) * d)
BARACUDA_UNARY_OP(cos, holomorphic::cos(x), -holomorphic::sin(x) * d)
BARACUDA_UNARY_OP(tan, holomorphic::tan(x), holomorphic::sech_squared(turned_left(x)) * d)
BARACUDA_UNARY_OP(sinh, holomorphic::sinh(x), holomorphic::cosh(x) * d)
BARACUDA_UNARY_OP(cosh, holomorphic::cosh(x), holomorphic::sinh(x) * d)
BARACUDA_UNARY_OP(tanh, holomorphic::tanh(x), holomorphic::sech_squared(x) * d)

// 1 / (1 - x^2)^(1/2) on the side of its cuts where asin is.
template <class T>
BARACUDA_HD Complex<T> over_cosine(Complex<T> d, Complex<T> x) {
  holomorphic::Roots<T> root(x);
  return quotient(quotient(d, root.minus), root.plus);
}
BARACUDA_UNARY_OP(asin, holomorphic::asin(x), over_cosine(d, x))
BARACUDA_UNARY_OP(acos, holomorphic::acos(x), -over_cosine(d, x))
BARACUDA_UNARY_OP(atan, holomorphic::atan(x), quotient(quotient(d, W(1) - turned_left(x)), W(1) + turned_left(x)))
BARACUDA_UNARY_OP(asinh, holomorphic::asinh(x), over_cosine(d, turned_left(x)))
BARACUDA_UNARY_OP(acosh, holomorphic::acosh(x),
                  quotient(quotient(d, holomorphic::sqrt(x - W(1))), holomorphic::sqrt(x + W(1))))
BARACUDA_UNARY_OP(atanh, holomorphic::atanh(x), quotient(quotient(d, W(1) - x), W(1) + x))

BARACUDA_BINARY_OP(add, x + y, d, d)
BARACUDA_BINARY_OP(sub, x - y, d, -d)
BARACUDA_BINARY_OP(mul, x* y, d* y, d* x)
BARACUDA_BINARY_OP(div, quotient(x, y), quotient(d, y), -(quotient(d, y) * quotient(x, y)))
BARACUDA_BINARY_OP(pow, holomorphic::pow(x, y), y == W(0) ? W(0) : y * holomorphic::pow(x, y - W(1)) * d,
                   holomorphic::log(x == W(0) ? W(1) : x) * holomorphic::pow(x, y) * d)

template <class W>
BARACUDA_HD W integer_power(W x, int64_t n) {
  W power = any_power(x, uint64_t(n < 0 ? -n : n));
  return n < 0 ? quotient(W(1), power) : power;
}
BARACUDA_UNARY(powi) {
  int64_t exponent;
  explicit powi(const Parameter* p) : exponent(int64_t(p[0].number())) {}
  BARACUDA_HD T operator()(T x) const { return integer_power(x, exponent); }
};
BARACUDA_UNARY_BACKWARD(powi_backward) {
  int64_t exponent;
  explicit powi_backward(const Parameter* p) : exponent(int64_t(p[0].number())) {}
  BARACUDA_HD T operator()(T x, T d) const {
    return exponent == 0 ? T(0) : double(exponent) * integer_power(x, exponent - 1) * d;
  }
};

BARACUDA_BINARY_VALUE(eq, bool, x == y)
BARACUDA_BINARY_VALUE(ne, bool, !(x == y))

}  // namespace baracuda::op::complex
