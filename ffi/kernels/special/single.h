// Activations in float alone, for a GPU, which has fewer units for doubles than a copy leaves idle: of float within a
// few units, and with shorter series of 16-bit floats, whose last bits are rounded away. T is the type in memory.
#pragma once

#include "../greater.h"
#include "series.h"

namespace baracuda::special::single {

#ifdef __CUDA_ARCH__
// e^x of x <= 20. The instruction alone would lose subnormal results: they are reckoned 2^64 times as large.
template <class T>
__device__ float exp(float x) {
  if (!is_half<T>) return expf(x);
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(fmaf(x, 0x1.715476p0f, 64)));
  return power * 0x1p-64f;
}
// 1 / d of 1 <= d < 2^126, and of NaN.
template <class T>
__device__ float reciprocal(float d) {
  float first;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(first) : "f"(d));
  return is_half<T> ? first : fmaf(first, fmaf(-d, first, 1), first);
}
__device__ inline float any_exp(float x) { return __expf(x); }
// Rounded, and not fused with a sum after it.
__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
#else
template <class T>
BARACUDA_HD float exp(float x) {
  return std::exp(x);
}
template <class T>
BARACUDA_HD float reciprocal(float d) {
  return 1 / d;
}
BARACUDA_HD float any_exp(float x) { return std::exp(x); }
BARACUDA_HD float product(float a, float b) { return a * b; }
#endif

// e^x - 1; a power of e^x near 1 has not the digits that are left.
BARACUDA_HD float expm1(float x) {
  float near = x + x * x * polynomial(x, 1 / 2.f, 1 / 6.f, 1 / 24.f, 1 / 120.f);
  return std::abs(x) < 0.25f ? near : any_exp(x) - 1;
}

// Phi(-size) = ratio * power, where power = e^(-size^2 / 2); 0 from 14.9 on.
template <class T>
struct NormalTail {
  float size, power, ratio;

  explicit BARACUDA_HD NormalTail(float x) {
    size = lesser(std::abs(x), 14.9f);
    float square = size * size;
    power = exp<T>(-0.5f * square);
    // What the square has lost, which is nothing in 16-bit floats.
    if constexpr (!is_half<T>) power = std::fma(power, -0.5f * std::fma(size, size, -square), power);
    float inverse = reciprocal<T>(std::fma(0.3f, size, 1.f));
    ratio = inverse * series::scaled_normal_cdf_single<T>(1 - inverse);
  }
};

template <class T>
BARACUDA_HD float gelu(float x) {
  NormalTail<T> tail(x);
  // x or -0, less what is missing: 0 keeps its sign.
  return std::fmax(x, -0.f) - tail.size * tail.ratio * tail.power;
}

// x less a root, which is the sum of two floats.
BARACUDA_HD float from_root(float x, double root) {
  float high = float(root);
  return (x - high) - float(root - high);
}

template <class T>
BARACUDA_HD float gelu_slope(float x) {
  constexpr float factor = 0x1.988454p-2f;  // 1 / sqrt(2 pi)
  NormalTail<T> tail(x);
  float below = tail.power * (tail.ratio - factor * tail.size), far = x > 0 ? 1 - below : below;
  float t = from_root(x, series::gelu_slope_root), near = t * series::gelu_slope_single<T>(t);
  return std::abs(t) < 0.5f ? near : far;
}

// e^(-2|u|) where u = sqrt(2 / pi) (x + 0.044715 x^3), and the derivative of 2|u| times |x|.
template <class T>
struct TanhTail {
  float size, power, slope;

  explicit BARACUDA_HD TanhTail(float x) {
    constexpr float a = 0x1.988454p+0f, b = 0x1.2444f2p-4f;
    size = lesser(std::abs(x), 24.f);  // where the result is 0 or x
    float square = size * size, cubic = product(b, square), sum = a + cubic, twice = product(size, sum);
    power = exp<T>(-twice), slope = size * (a + 3 * cubic);
    if constexpr (!is_half<T>) {
      // What each step has lost, and a and b: the exponent's absolute error is the power's relative one.
      constexpr float a_rest = -0x1.857936p-25f, b_rest = 0x1.49b16ap-29f;
      float of_cubic = sum - a, lost = (a - (sum - of_cubic)) + (cubic - of_cubic);
      lost +=
          std::fma(b, square, -cubic) + std::fma(b, std::fma(size, size, -square), std::fma(b_rest, square, a_rest));
      lost = std::fma(size, lost, std::fma(size, sum, -twice));
      power = std::fma(power, -lost, power);
    }
  }
};

template <class T>
BARACUDA_HD float gelu_tanh(float x) {
  TanhTail<T> tail(x);
  return (x < 0 ? -tail.size * tail.power : x) * reciprocal<T>(1 + tail.power);
}

template <class T>
BARACUDA_HD float gelu_tanh_slope(float x) {
  TanhTail<T> tail(x);
  float e = tail.power, inverse = reciprocal<T>(1 + e);
  float below = e * ((1 - tail.slope) + e) * (inverse * inverse), far = x > 0 ? 1 - below : below;
  float t = from_root(x, series::gelu_tanh_slope_root), near = t * series::gelu_tanh_slope_single<T>(t);
  return std::abs(t) < 0.25f ? near : far;
}

// x n / (n + 2), where n = e^x (e^x + 2); beyond 20 that is x.
BARACUDA_HD float mish(float x) {
  float e = exp<Half>(x > 20 ? 20 : x), n = e * (e + 2);
  return (x < -200 ? -200 : x) * (n * reciprocal<Half>(n + 2));
}

// (n (n + 2) + 4 x e^x (e^x + 1)) / (n + 2)^2.
BARACUDA_HD float mish_slope(float x) {
  float z = x < -200 ? -200 : x > 20 ? 20 : x;
  float e = exp<Half>(z), n = e * (e + 2), inverse = reciprocal<Half>(n + 2);
  float far = n * inverse + 4 * z * (e * (e + 1) * inverse) * inverse;
  float t = from_root(x, series::mish_slope_root), near = t * series::mish_slope_single<Half>(t);
  return std::abs(t) < 0.5f ? near : far;
}

}  // namespace baracuda::special::single
