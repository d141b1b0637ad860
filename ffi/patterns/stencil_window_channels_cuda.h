// The stencil pattern with windows of 3, 5 or 7 along the last spatial axis, the channels last. A thread has a vector
// of neighboring channels, at four positions next to each other: each vector that it reads is used for all windows that
// it belongs to. dx is the same sum over dy, with the window turned over, where strides are 1.
#pragma once

#include "../kernels/depthwise.h"
#include "stencil_sums_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int strip_positions = 4;

// A source [in], a result [out] and where windows begin: of y, or of dx.
template <class T>
struct ChannelStrips {
  const T *from, *weight, *bias;  // no bias for dx
  int64_t batches, channels, taps;
  int64_t in[3], out[3], window[2], stride[2], dilation[2], before[3];
  int64_t vectors, strips, total;
};

// The zeros around x are multiplied; for dx, what is outside of dy is no term.
template <int K, int S, int V, bool is_dx, class T>
__global__ void __launch_bounds__(stencil_block) stencil_strips(ChannelStrips<T> work, T* to) {
  using Wide = Accumulator<T>;
  constexpr int R = strip_positions, length = (R - 1) * S + K;
  int64_t index = int64_t(blockIdx.x) * stencil_block + threadIdx.x;
  if (index >= work.total) return;
  int64_t strip = quotient(index, work.vectors), channel = (index - strip * work.vectors) * V;
  int64_t row = quotient(strip, work.strips), w = (strip - row * work.strips) * R;
  int64_t plane = quotient(row, work.out[1]), h = row - plane * work.out[1];
  int64_t sequence = quotient(plane, work.out[0]), d = plane - sequence * work.out[0];
  int64_t group = quotient(sequence, work.batches), first = w * S - work.before[2];
  const T* weight = work.weight + group * work.taps * work.channels + channel;
  const T* from = work.from + sequence * work.in[0] * work.in[1] * work.in[2] * work.channels + channel;
  Wide sums[R][V] = {};
  for (int64_t a = 0; a < work.window[0]; ++a)
    for (int64_t b = 0; b < work.window[1]; ++b) {
      int64_t depth = d * work.stride[0] + a * work.dilation[0] - work.before[0];
      int64_t height = h * work.stride[1] + b * work.dilation[1] - work.before[1];
      bool is_row = depth >= 0 && depth < work.in[0] && height >= 0 && height < work.in[1];
      if (is_dx && !is_row) continue;
      const T* of_row = from + (depth * work.in[1] + height) * work.in[2] * work.channels;
      int64_t tap = (a * work.window[1] + b) * K;
      Wide line[length][V];
      bool is_read[length];
#pragma unroll
      for (int i = 0; i < length; ++i) {
        is_read[i] = is_row && first + i >= 0 && first + i < work.in[2];
        Vector<T, V> values{};
        if (is_read[i]) values = load<V>(of_row + (first + i) * work.channels);
#pragma unroll
        for (int v = 0; v < V; ++v) line[i][v] = Wide(values.lane[v]);
      }
#pragma unroll
      for (int c = 0; c < K; ++c) {
        auto factors = load<V>(weight + (is_dx ? work.taps - 1 - tap - c : tap + c) * work.channels);
#pragma unroll
        for (int r = 0; r < R; ++r) {
          if (is_dx && !is_read[r * S + c]) continue;
#pragma unroll
          for (int v = 0; v < V; ++v) sums[r][v] += Wide(factors.lane[v]) * line[r * S + c][v];
        }
      }
    }
  Vector<T, V> more{};
  if (!is_dx) more = load<V>(work.bias + group * work.channels + channel);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (w + r >= work.out[2]) break;
    Vector<T, V> values;
#pragma unroll
    for (int v = 0; v < V; ++v) values.lane[v] = T(sums[r][v] + (is_dx ? Wide(0) : Wide(more.lane[v])));
    store<V>(to + (row * work.out[2] + w + r) * work.channels + channel, values);
  }
}

template <class T>
inline constexpr int strip_lanes = 16 / sizeof(T);

template <class T>
bool has_strips(const DepthwiseShape& shape) {
  int64_t size = shape.window[2];
  return shape.channels_last && shape.multiplier == 1 && shape.channels % strip_lanes<T> == 0 &&
         (size == 3 || size == 5 || size == 7) && shape.dilation[2] == 1 &&
         (shape.stride[2] == 1 || shape.stride[2] == 2);
}
template <class T>
bool has_strips_dx(const DepthwiseShape& shape) {
  return has_strips<T>(shape) && shape.stride[0] * shape.stride[1] * shape.stride[2] == 1;
}

template <bool is_dx, class T>
Status run_strips(const Executor& executor, const Depthwise<T>& conv, const T* from, const T* bias, T* to) {
  const DepthwiseShape& shape = conv.shape;
  constexpr int V = strip_lanes<T>;
  ChannelStrips<T> work{from, conv.weight, bias, shape.batches, shape.channels, shape.taps()};
  for (int a = 0; a < 3; ++a) {
    work.in[a] = is_dx ? shape.out[a] : shape.in[a], work.out[a] = is_dx ? shape.in[a] : shape.out[a];
    work.before[a] = is_dx ? (shape.window[a] - 1) * shape.dilation[a] - shape.before[a] : shape.before[a];
    if (a < 2) work.window[a] = shape.window[a], work.stride[a] = shape.stride[a], work.dilation[a] = shape.dilation[a];
  }
  work.vectors = shape.channels / V, work.strips = ceil_div(work.out[2], strip_positions);
  work.total = shape.sequences() * work.out[0] * work.out[1] * work.strips * work.vectors;
  int64_t blocks = ceil_div(work.total, stencil_block);
  if (!is_grid(blocks)) return too_large();
  if (blocks == 0) return {};
  auto of_size = [&](auto size) {
    constexpr int K = decltype(size)::value;
    if (shape.stride[2] == 1)
      stencil_strips<K, 1, V, is_dx><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(work, to);
    else if constexpr (!is_dx)
      stencil_strips<K, 2, V, is_dx><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(work, to);
    return launched();
  };
  if (shape.window[2] == 3) return of_size(std::integral_constant<int, 3>{});
  if (shape.window[2] == 5) return of_size(std::integral_constant<int, 5>{});
  return of_size(std::integral_constant<int, 7>{});
}

}  // namespace internal
}  // namespace baracuda
