// The weights of a causal convolution on a CUDA grid: as factors of a thread's channel, and what ranges give for them.
#pragma once

#include "../kernels/causal_conv.h"
#include "stencil_sums_cuda.h"

namespace baracuda {
namespace internal {

template <int taps, class T>
__device__ void load_factors(const CausalConv<T>& conv, int64_t channel, Accumulator<T> (&factors)[taps]) {
#pragma unroll
  for (int lag = 0; lag < taps; ++lag)
    factors[lag] = lag < conv.shape.width ? conv.factor(channel, lag) : Accumulator<T>(0);
}

// What the ranges give for weights and bias: [groups, parts, taps + 1, channels], of which the last lag is the bias.
template <class T>
struct StencilParts {
  Accumulator<T>* sums;
  int64_t parts;

  template <int taps>
  __device__ Accumulator<T>* at(const StencilShape& shape, int64_t group, int64_t part, int lag,
                                int64_t channel) const {
    return sums + ((group * parts + part) * (taps + 1) + lag) * shape.channels + channel;
  }
};

// Where the sums of a lag belong.
template <class T>
struct StencilWeights {
  StencilShape shape;
  int taps;
  T *dweight, *dbias;

  __device__ void operator()(int64_t group, int64_t lag, int64_t channel, Accumulator<T> total) const {
    channel += group * shape.channels;
    if (lag == taps)
      dbias[channel] = T(total);
    else if (lag < shape.width)
      dweight[channel * shape.width + shape.width - 1 - lag] = T(total);
  }
};

}  // namespace internal
}  // namespace baracuda
