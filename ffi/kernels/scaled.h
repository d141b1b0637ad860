// Nonnegative numbers that neither overflow nor underflow: m 2^e, with an exponent of their own. Products and sums of
// them take no exponentials and no logarithms, and round as a float's do, however small the numbers are: sums over
// paths are exact where their logarithms, which may be in the thousands, would have lost digits.
#pragma once

#include "exponential.h"

namespace baracuda {

// m is 0, or at least 1, and e is an integer in a float, which vectorizes better and has no bounds. Of 0, e is
// -infinity.
template <class T>
struct Scaled {
  T m, e;
};

template <class T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

template <class T>
BARACUDA_HD Scaled<T> scaled_zero() {
  return {T(0), minus_infinity<T>};
}
template <class T>
BARACUDA_HD Scaled<T> scaled_one() {
  return {T(1), T(0)};
}

// The larger one, b where a is NaN.
template <class T>
BARACUDA_HD T larger(T a, T b) {
#ifdef __CUDA_ARCH__
  return fmax(a, b);
#else
  return a > b ? a : b;
#endif
}

// 2^d of an integer d <= 0; 0 where that is no normal number, and of NaN, which is the difference of two zeros'
// exponents.
template <class T>
BARACUDA_HD T power_of_2(T d) {
  if constexpr (sizeof(T) == 8) {
    d = larger(d, T(-1023));
    return bit_cast<T>(bit_cast<uint64_t>(d + (0x1.8p52 + 1023)) << 52);
  } else {
    d = larger(d, T(-127));
    return bit_cast<T>(bit_cast<uint32_t>(d + (0x1.8p23f + 127)) << 23);
  }
}

template <class T>
BARACUDA_HD Scaled<T> operator*(Scaled<T> a, Scaled<T> b) {
  return {a.m * b.m, a.e + b.e};
}
template <class T>
BARACUDA_HD Scaled<T> operator+(Scaled<T> a, Scaled<T> b) {
  T e = larger(a.e, b.e);
  return {a.m * power_of_2(a.e - e) + b.m * power_of_2(b.e - e), e};
}
template <class T>
BARACUDA_HD Scaled<T> sum(Scaled<T> a, Scaled<T> b, Scaled<T> c) {
  T e = larger(larger(a.e, b.e), c.e);
  return {a.m * power_of_2(a.e - e) + b.m * power_of_2(b.e - e) + c.m * power_of_2(c.e - e), e};
}

// The same number with m below 2.
template <class T>
BARACUDA_HD Scaled<T> normalized(Scaled<T> a) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int digits = sizeof(T) == 8 ? 52 : 23, bias = sizeof(T) == 8 ? 1023 : 127;
  Bits bits = bit_cast<Bits>(a.m);
  T power = T(int32_t(uint32_t(bits >> digits)) - bias);  // of a number that has no sign
  T m = bit_cast<T>((bits & ((Bits(1) << digits) - 1)) | Bits(bias) << digits);
  bool is_normal = a.m >= 1 && a.m <= std::numeric_limits<T>::max();
  return {is_normal ? m : a.m, is_normal ? a.e + power : a.e};
}

// e^x; 0 where e would leave the range of T. +infinity gives NaN.
template <class T>
BARACUDA_HD Scaled<T> scaled_exponential(T x) {
  constexpr T log2_e = T(0x1.71547652b82fep0);
  // log(2) in two parts, the first of which has products with integers that are exact.
  constexpr T high = sizeof(T) == 8 ? T(0x1.62e42fee00000p-1) : T(0x1.62e4p-1);
  constexpr T low = sizeof(T) == 8 ? T(0x1.a39ef35793c76p-33) : T(0x1.7f7d1cp-20);
  T power = std::ceil(x * log2_e);
  T below = (x - power * high) - power * low;  // in (-log(2), 0], where x has digits for it
  below = below < T(-0.7) ? T(-0.7) : below > T(0.01) ? T(0) : below;
  bool is_zero = power == minus_infinity<T>;
  return {is_zero ? T(0) : 2 * exponential<T>(below), power - 1};
}

template <class T>
BARACUDA_HD T logarithm_of(Scaled<T> a) {
  Scaled<T> b = normalized(a);
  return b.m == 0 ? minus_infinity<T> : std::log(b.m) + b.e * T(0x1.62e42fefa39efp-1);
}

}  // namespace baracuda
