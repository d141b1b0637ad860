// Exponentials and logarithms for what is computed in double: of a result in double by the library, of one in float to
// 30 bits and more, in a few lines without branches, which vectorize.
#pragma once

#include "series.h"

namespace baracuda::special {

// e^x = scale * (1 + rest), where scale is a power of 2 and |rest| < 0.42.
struct ScaledExponential {
  double scale, rest;

  explicit BARACUDA_HD ScaledExponential(double x) {
    x = x < -700 ? -700 : x > 700 ? 700 : x;  // where a float is 0 or infinite, and scale is a normal number
    constexpr double shift = 0x1.8p52;        // leaves no bits for a fraction, and the integer in the low ones
    double shifted = x * 0x1.71547652b82fep0 + shift, power = shifted - shift;
    double r = x - power * 0x1.62e42fefa39efp-1;
    rest = r * series::expm1<float>(r);
    scale = bit_cast<double>((bit_cast<uint64_t>(shifted) + 1023) << 52);
  }
};

// e^x and e^x - 1, for a result of type T.
template <class T>
BARACUDA_HD double exponential_for(double x) {
  if constexpr (sizeof(T) == 8) return std::exp(x);
  ScaledExponential e(x);
  return e.scale + e.scale * e.rest;
}
template <class T>
BARACUDA_HD double exponential_minus_one_for(double x) {
  if constexpr (sizeof(T) == 8) return std::expm1(x);
  ScaledExponential e(x);
  return (e.scale - 1) + e.scale * e.rest;  // loses the sign of 0
}

// e^(high + low).
template <class T>
BARACUDA_HD double exponential_for(Pair x) {
  double e = exponential_for<T>(x.high);
  return sizeof(T) == 8 ? e + e * x.low : e;
}

// log(x) = exponent * log(2) + log(1 + above), where 1 + above is from sqrt(1 / 2) to sqrt(2). x is positive and
// normal.
struct ScaledLogarithm {
  double exponent, above;

  explicit BARACUDA_HD ScaledLogarithm(double x) {
    constexpr uint64_t least = 0x3fe6a09e667f3bcdu, one = 1023, bits = 52;
    uint64_t moved = bit_cast<uint64_t>(x) - least + (one << bits);
    // An integer in a double's low bits: AVX2 has no conversion of 64-bit integers.
    exponent = bit_cast<double>(moved >> bits | bit_cast<uint64_t>(0x1p52)) - (0x1p52 + 1023);
    above = bit_cast<double>((moved & ((uint64_t(1) << bits) - 1)) + least) - 1;
  }

  static BARACUDA_HD double near_one(double above) {
    double s = above / (2 + above), q = s * s;
    return 2 * (s + s * (q * series::artanh<float>(q)));
  }
};

// log(x), for a result of type T.
template <class T>
BARACUDA_HD double logarithm_for(double x) {
  if constexpr (sizeof(T) == 8) return std::log(x);
  ScaledLogarithm l(x);
  double log = l.exponent * 0x1.62e42fefa39efp-1 + ScaledLogarithm::near_one(l.above);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return x > 0 && x < infinity ? log : x == 0 ? -infinity : x > 0 ? x : std::numeric_limits<double>::quiet_NaN();
}

// log(1 + x), for a result of type T; of x > -1 and NaN.
template <class T>
BARACUDA_HD double logarithm_of_one_and_for(double x) {
  if constexpr (sizeof(T) == 8) return std::log1p(x);
  ScaledLogarithm l(1 + x);
  // Near 0 x has more bits than 1 + x.
  double log = ScaledLogarithm::near_one(l.exponent == 0 ? x : l.above);
  return l.exponent == 0 ? log : l.exponent * 0x1.62e42fefa39efp-1 + log;
}

}  // namespace baracuda::special
