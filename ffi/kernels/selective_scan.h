// The selective scan. A channel has N states, with rates A[n]; at position l, whose step is d:
//
//   h[n] = e^(d A[n]) h[n] + d u B[n, l];   y = sum over n of C[n, l] h[n] + D u;   the result is y z sigmoid(z).
//
// Where a segment begins, h is 0 before. The functors here are of one state and one position; drivers keep h.
#pragma once

#include "exponential.h"
#include "unroll.h"

namespace baracuda {

// u, dt, z and the result are [groups, batches, channels, length], A [groups, channels, states], B and C [groups,
// batches, shared, states, length]: neighboring channels have one of them.
struct SelectiveShape {
  int64_t groups, batches, channels, shared, states, length;

  BARACUDA_HD int64_t rows() const { return groups * batches * channels; }
  BARACUDA_HD int64_t chunks() const;
  BARACUDA_HD int64_t channels_each() const { return shared > 0 ? channels / shared : 0; }
};

// The states before each chunk of so many positions are saved for the gradient, which computes those between again.
inline constexpr int selective_chunk = 16;

BARACUDA_HD int64_t SelectiveShape::chunks() const { return (length + selective_chunk - 1) / selective_chunk; }

// e^(d a), of a rate made of a.
template <class Wide>
struct Decay {
#ifdef __CUDA_ARCH__
  static constexpr bool is_fast = sizeof(Wide) == 4;
#else
  static constexpr bool is_fast = false;
#endif
  // What a rate is in units of 1 / a.
  static BARACUDA_HD Wide unit() { return is_fast ? Wide(0.6931471805599453) : Wide(1); }
  static BARACUDA_HD Wide rate(Wide a) { return is_fast ? a * Wide(1.4426950408889634) : a; }
  static BARACUDA_HD Wide factor(Wide exponent) {
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Wide) == 4) {
      float y;
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(exponent));
      return y;
    }
    return ::exp(exponent);
#elif defined(__CUDACC__)
    return std::exp(exponent);
#else
    Wide e = exponential<Wide>(exponent < 0 ? exponent : -exponent);  // of what is not above 0
    return exponent > 0 ? 1 / e : e;
#endif
  }
};

template <class T>
struct SelectiveScan {
  using Wide = Accumulator<T>;
  SelectiveShape shape;
  const T *u, *dt;
  const Wide* a;
  const T *b, *c;
  const Wide* skip;          // D, [groups, channels]
  const T* z;                // or null
  const Wide *bias, *state;  // of dt [groups, channels]; [groups, batches, channels, states]
  const uint8_t* starts;     // [groups, batches, length], or null
  bool softplus;

  // The quotient, of a divisor from 1 to 3.
  static BARACUDA_HD Wide quotient(Wide x, Wide divisor) {
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Wide) == 4) {
      float y;
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(divisor));
      return x * y;
    }
#endif
    return x / divisor;
  }
  static BARACUDA_HD Wide sigmoid(Wide x) {
    Wide e = exponential<T>(-std::abs(x));
    return quotient(x < 0 ? e : Wide(1), 1 + e);
  }
  // log(1 + e), of e from 0 to 1.
  static BARACUDA_HD Wide log_above_one(Wide e) {
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Wide) == 4) return series_above_one(e);
#endif
    return std::log1p(e);
  }
  // 2 artanh(e / (2 + e)): the series' next term is below 2^-26 of the whole.
  static BARACUDA_HD Wide series_above_one(Wide e) {
    Wide s = quotient(e, 2 + e), q = s * s, sum = Wide(1) / 13;
    sum = sum * q + Wide(1) / 11, sum = sum * q + Wide(1) / 9, sum = sum * q + Wide(1) / 7;
    sum = sum * q + Wide(1) / 5, sum = sum * q + Wide(1) / 3;
    return 2 * (s * q * sum + s);
  }
  static BARACUDA_HD Wide soft(Wide raw) { return (raw < 0 ? Wide(0) : raw) + log_above_one(std::exp(-std::abs(raw))); }
  BARACUDA_HD Wide step(Wide raw) const { return softplus ? soft(raw) : raw; }
  BARACUDA_HD Wide step_slope(Wide raw) const { return softplus ? sigmoid(raw) : Wide(1); }

  // Steps of neighboring positions: one branch for all, so that they are computed side by side.
  template <int K>
  BARACUDA_HD void to_steps(Wide (&raw)[K], Wide bias) const {
    BARACUDA_UNROLL
    for (int k = 0; k < K; ++k) raw[k] += bias;
    if (!softplus) return;
    BARACUDA_UNROLL
    for (int k = 0; k < K; ++k) raw[k] = soft(raw[k]);
  }
  // What those are of the sums that they come from.
  template <int K>
  BARACUDA_HD void to_step_slopes(Wide (&raw)[K], Wide bias) const {
    if (softplus) {
      BARACUDA_UNROLL
      for (int k = 0; k < K; ++k) raw[k] = sigmoid(raw[k] + bias);
    } else {
      BARACUDA_UNROLL
      for (int k = 0; k < K; ++k) raw[k] = 1;
    }
  }

  static BARACUDA_HD Wide gate(Wide z) {
    Wide y = z * sigmoid(z);
    return z < -500 ? Wide(-0.0) : z > 500 ? z : y;
  }
  static BARACUDA_HD Wide gate_slope(Wide z) {
    Wide s = sigmoid(z);
    return z < -500 ? Wide(0) : z > 500 ? Wide(1) : s * (1 + z * (1 - s));
  }

  BARACUDA_HD bool is_start(int64_t sequence, int64_t position) const {
    return starts && position > 0 && starts[sequence * shape.length + position];
  }
  // Of a row of [groups, batches, channels]: its sequence, its channel among those of all groups, and where its B and C
  // begin.
  BARACUDA_HD int64_t sequence(int64_t row) const { return row / shape.channels; }
  BARACUDA_HD int64_t channel(int64_t row) const {
    int64_t s = sequence(row);
    return s / shape.batches * shape.channels + row - s * shape.channels;
  }
  BARACUDA_HD int64_t shared(int64_t row) const {
    int64_t s = sequence(row);
    return s * shape.shared + (row - s * shape.channels) / shape.channels_each();
  }
};

// Cotangents of all arguments. Those of B and C are written as sums over ranges of channels first.
template <class T>
struct SelectiveGradients {
  using Wide = Accumulator<T>;
  const Wide* states;  // [groups, batches, channels, chunks, N], before each chunk
  const T* dy;         // of the result
  const Wide* dfinal;  // of the last state
  T *du, *ddt;
  Wide* da;
  T *db, *dc;
  Wide* dskip;
  T* dz;
  Wide *dbias, *dstate;
};

// What one state gives at one position, of the cotangent of h after it.
template <class Wide>
struct StateGradient {
  Wide decayed;   // its part of h that comes from before: of the rate's cotangent
  Wide of_input;  // the cotangent of d u, through B
  Wide dh;

  // `kept` is e^(d a) h before, `b` and `c` are B and C here, dy is the cotangent of y, and carry that of h from after.
  BARACUDA_HD StateGradient(Wide kept, Wide b, Wide c, Wide dy, Wide carry) {
    dh = carry + dy * c;
    decayed = dh * kept;
    of_input = dh * b;
  }
};

}  // namespace baracuda
