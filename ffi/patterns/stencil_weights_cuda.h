// The weights of a stencil on a CUDA grid: as factors of a thread's channel, and what ranges give for them, which is
// written, and added by a second kernel in the order of ranges.
#pragma once

#include "../kernels/causal_conv.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int stencil_block = 256;

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

// A block adds the parts of one lag of 32 channels: each warp every eighth part, and then one warp those of all.
template <int taps, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_weights(StencilShape shape, StencilParts<T> parts, T* dweight, T* dbias, int64_t tiles) {
  using Wide = Accumulator<T>;
  constexpr int warps = stencil_block / 32;
  __shared__ Wide of_warps[warps][32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, lag = blockIdx.y;
  int64_t group = int64_t(blockIdx.x) / tiles, channel = (int64_t(blockIdx.x) - group * tiles) * 32 + lane;
  bool is_channel = channel < shape.channels;
  Wide total = 0;
  if (is_channel)
#pragma unroll 4
    for (int64_t part = warp; part < parts.parts; part += warps)
      total += *parts.template at<taps>(shape, group, part, lag, channel);
  of_warps[warp][lane] = total;
  __syncthreads();
  if (warp > 0 || !is_channel) return;
  total = 0;
  for (int w = 0; w < warps; ++w) total += of_warps[w][lane];
  channel += group * shape.channels;
  if (lag == taps)
    dbias[channel] = T(total);
  else if (lag < shape.width)
    dweight[channel * shape.width + shape.width - 1 - lag] = T(total);
}

}  // namespace internal
}  // namespace baracuda
