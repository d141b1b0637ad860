// Exponentials and logarithms where a library's would be calls that do not vectorize.
#pragma once

#include "number.h"

namespace baracuda {

#ifndef __CUDACC__
// first + x (next + x (...)), each product added unrounded: alone and in a vector's lanes these are the same bits.
inline float horner(float, float last) { return last; }
template <class... More>
float horner(float x, float first, More... more) {
  return std::fma(x, horner(x, more...), first);
}

// e^x = scale * (1 + rest) for x <= 0, scale being a power of 2 and rest small: a few lines without branches, which
// vectorize. Both that and scale * rest + (scale - 1) are within 2 units in the last place.
struct Exponential {
  float scale, rest;

  explicit BARACUDA_HD Exponential(float x) {
    x = x < -88.f ? -88.f : x;                // whose scale is the one of subnormals, 0
    constexpr float shift = 0x1.8p23f + 127;  // leaves no bits for a fraction, and the exponent in the low ones
    float shifted = std::fma(x, 0x1.715476p0f, shift), power = shifted - shift;
    // log(2) in two parts, the first of 15 bits
    float r = std::fma(power, -0x1.7f7d1cp-20f, std::fma(power, -0x1.62e4p-1f, x));
    // The polynomial with the smallest relative error, which is below 2^-27 of the whole.
    rest =
        std::fma(r * r, horner(r, 0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f6p-5f, 0x1.123a76p-7f, 0x1.6a233ep-10f), r);
    scale = bit_cast<float>(bit_cast<uint32_t>(shifted) << 23);
  }
};
#endif

#ifdef __CUDACC__
inline constexpr float log2_of_e = 1.44269504f;

// 2^x; subnormals are 0.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

// e^x and e^x - 1 for x <= 0, to the last bits of T; of 16-bit floats subnormals are 0. The CUDA library's would take
// longer for 16-bit floats than their memory, and __expf six instructions where this takes two.
template <class T>
BARACUDA_HD Comparable<T> exponential(Comparable<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (is_half<T>) return power_of_two(x * log2_of_e);
#elif !defined(__CUDACC__)
  if constexpr (sizeof(T) <= 4) {
    Exponential e(x);
    return std::fma(e.scale, e.rest, e.scale);
  }
#endif
  return std::exp(x);
}
template <class T>
BARACUDA_HD Comparable<T> exponential_minus_one(Comparable<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (is_half<T>) {
    float near_zero = x * (1 + x * (0.5f + x * (1 / 6.f)));
    return fabs(x) < 0.02f ? near_zero : __expf(x) - 1;
  }
#elif !defined(__CUDACC__)
  if constexpr (sizeof(T) <= 4) {
    Exponential e(x);
    return std::fma(e.scale, e.rest, e.scale - 1);
  }
#endif
  return std::expm1(x);
}

// e^x of x <= 0, or above that by as much as rounding leaves; NaN of NaN.
template <class T>
BARACUDA_HD Comparable<T> exponential_up_to_rounding(Comparable<T> x) {
  Comparable<T> y = x > 0 ? 1 + x : exponential<T>(x);
  return x != x ? x : y;
}

// e^(x - y - rest) of an element x of a sum of exponentials whose logarithm is y + rest; 0 for -inf, which adds
// nothing, also to a sum of nothing else.
template <class T>
BARACUDA_HD Comparable<T> exponential_below(Comparable<T> x, Comparable<T> y, Comparable<T> rest) {
  using Wide = Comparable<T>;
  Wide own = exponential_up_to_rounding<T>((x == y ? Wide(0) : x - y) - rest);
  return x == -std::numeric_limits<Wide>::infinity() ? Wide(0) : own;
}

// log(x) of x >= 1, of 0 and of NaN, to the last bits of T.
template <class T>
BARACUDA_HD T logarithm(T x) {
#ifndef __CUDACC__
  if constexpr (sizeof(T) == 4) {
    // x = 2^exponent m, where m is 1 / sqrt(2) or more, and less than sqrt(2).
    constexpr uint32_t least = 0x3f3504f3u;
    uint32_t above = bit_cast<uint32_t>(x) - least;
    float exponent = float(int32_t(above) >> 23), m = bit_cast<float>((above & 0x7fffffu) + least);
    // log(m) = 2 artanh(s): the series' next term is below 2^-29 of the whole.
    float s = (m - 1) / (m + 1), q = s * s;
    float tail = q * horner(q, 1 / 3.f, 1 / 5.f, 1 / 7.f, 1 / 9.f, 1 / 11.f);
    float log = std::fma(exponent, 0x1.62e4p-1f, std::fma(exponent, 0x1.7f7d1cp-20f, 2 * std::fma(s, tail, s)));
    return x > 0 ? log : x == 0 ? -std::numeric_limits<T>::infinity() : x;
  }
#endif
  return std::log(x);
}

}  // namespace baracuda
