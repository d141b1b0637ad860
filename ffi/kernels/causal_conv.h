// The causal depthwise convolution. Of weights w of a channel and a window of so many elements, the newest has the last
// weight: z[l] = bias + sum over the lags j of c[j] x[l - j], with c[j] = w[width - 1 - j]. Before x comes the state.
// What precedes the first element of a run of equal segment ids counts as 0.
#pragma once

#include "exponential.h"
#include "quotient.h"

namespace baracuda {

// Arrays are [groups, batches, channels, length], or have the channels last; weights are [groups, channels, width], the
// bias [groups, channels], and the state [groups, batches, channels, width - 1].
struct StencilShape {
  int64_t groups, batches, channels, length;
  int width;
  bool channels_last;

  BARACUDA_HD int64_t sequences() const { return groups * batches; }
  BARACUDA_HD int64_t rows() const { return groups * batches * channels; }
};

inline constexpr int most_taps = 8;

template <class T>
struct CausalConv {
  using Wide = Accumulator<T>;
  StencilShape shape;
  const T *x, *weight, *bias, *state;
  const uint8_t* starts;  // [groups, batches, length]: whether an element is the first of its segment; or null
  bool silu;

#ifdef __CUDA_ARCH__
  // most / d for 1 <= d <= 2, up to rare last bits, without the branch that other d need.
  static __device__ float divided(float most, float d) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(d));
    float near = most * inverse;
    return fmaf(fmaf(-near, d, most), inverse, near);
  }
  // To the last bits of 16-bit floats: 2^-32 / (2^-32 + 2^(-32 - z log2(e))). Without the factor what is below 2^-126
  // would be 0.
  static __device__ float quick_sigmoid(float z) {
    constexpr float scale = 0x1p-32f;
    float power, inverse;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(fmaf(z, -0x1.715476p0f, -32.f)));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(power + scale));
    return inverse * scale;
  }
#endif
  static BARACUDA_HD Wide sigmoid(Wide z) {
#ifdef __CUDA_ARCH__
    if constexpr (is_half<T>) return quick_sigmoid(z);
#endif
    Wide e = exponential<T>(z < 0 ? z : -z), most = z < 0 ? e : Wide(1);
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<T, float>) return divided(most, 1 + e);
#endif
    return most / (1 + e);
  }
  // Where the sigmoid is 0 or 1, z is a number: infinity times 0 would be NaN.
  static constexpr Wide far = sizeof(Wide) == 4 ? 120 : 500, beyond = sizeof(Wide) == 4 ? 120 : 800;
  static BARACUDA_HD Wide above(Wide z) { return z < -far ? -beyond : z; }
  static BARACUDA_HD Wide of_silu(Wide z) {
    z = above(z);
    return z * sigmoid(z);
  }
  static BARACUDA_HD Wide slope_of_silu(Wide z) {
    z = above(z);
    z = z > far ? beyond : z;
    Wide s = sigmoid(z);
#ifdef __CUDA_ARCH__
    if constexpr (is_half<T>) return fmaf(s, fmaf(-z, s, z), s);  // an instruction less, right to 16-bit floats
#endif
    return s * (1 + z * (1 - s));
  }
  BARACUDA_HD Wide activated(Wide z) const { return silu ? of_silu(z) : z; }
  // The cotangent of z, of that of the result.
  BARACUDA_HD Wide slope(Wide z, Wide dy) const { return silu ? slope_of_silu(z) * dy : dy; }

  // The channel of a row of [groups, batches, channels], among the channels of all groups.
  BARACUDA_HD int64_t channel(int64_t row) const {
    int64_t sequence = quotient(row, shape.channels);
    return quotient(sequence, shape.batches) * shape.channels + row - sequence * shape.channels;
  }
  BARACUDA_HD Wide factor(int64_t channel, int lag) const {
    return Wide(weight[channel * shape.width + shape.width - 1 - lag]);
  }
  // The element of the state at position -width + 1 ... -1 of a row, 0 before.
  BARACUDA_HD Wide before(int64_t row, int64_t position) const {
    int64_t at = shape.width - 1 + position;
    return at < 0 ? Wide(0) : Wide(state[row * (shape.width - 1) + at]);
  }
  BARACUDA_HD bool is_start(int64_t sequence, int64_t position) const {
    return starts && position > 0 && position < shape.length && starts[sequence * shape.length + position];
  }
};

}  // namespace baracuda
