// The stencil pattern with windows of 2 to 7 along the last spatial axis, the channels last, that walks
// (stencil_window_walks_cuda.h) do not have, as forward with strides of 2. A thread has a vector of neighboring
// channels, at positions next to each other, a strip: each vector that it reads is used for all windows that it belongs
// to. dx is the same sum over dy, with the window turned over, where strides are 1. For sums for weights a thread goes
// through such strips of positions, each with one row of the window. K is 3, 5 or 7, of windows of `size` elements it
// is that or one more.
#pragma once

#include "../kernels/depthwise.h"
#include "stencil_sums_cuda.h"

namespace baracuda {
namespace internal {

template <int K>
inline constexpr int strip_positions = K >= 5 ? 8 : 4;

// A source [in], a result [out] and where windows begin: of y, or of dx.
template <class T>
struct ChannelStrips {
  const T *from, *weight, *bias;  // no bias for dx
  int64_t batches, channels, taps;
  int64_t in[3], out[3], window[2], stride[2], dilation[2], before[3];
  int64_t vectors, strips, total;
  int size;
};

// The zeros around x are multiplied; for dx, what is outside of dy is no term.
template <int K, int S, int V, bool is_dx, class T>
__global__ void __launch_bounds__(stencil_block) stencil_strips(ChannelStrips<T> work, T* to) {
  using Wide = Accumulator<T>;
  constexpr int R = strip_positions<K>, length = (R - 1) * S + K;
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
      int64_t tap = (a * work.window[1] + b) * work.size;
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
        if (c == K - 1 && c == work.size) continue;
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

// Sums for the weights of a row of windows. A block has `lanes` vectors of channels and a range of strips, of which its
// threads with the same channels have equal parts; their sums are added in their order. Blocks of the same range are
// next to each other, so that what they read is cached. Positions outside of x are no terms.
template <int K, int S, int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_strips_dweight(Depthwise<T> conv, const T* dy, Accumulator<T>* parts, int lanes, int64_t tiles,
                           int64_t ranges) {
  using Wide = Accumulator<T>;
  constexpr int R = strip_positions<K>, length = (R - 1) * S + K;
  __shared__ Wide of_threads[stencil_block * V];
  const DepthwiseShape& shape = conv.shape;
  const int64_t channels = shape.channels, rows = shape.window[0] * shape.window[1], size = shape.window[2];
  const int64_t block = quotient(int64_t(blockIdx.x), rows), of_window = blockIdx.x - block * rows;
  const int64_t part = quotient(block, tiles), group = quotient(part, ranges), range = part - group * ranges;
  const int64_t a = quotient(of_window, shape.window[1]), b = of_window - a * shape.window[1];
  const int lane = threadIdx.x % lanes, worker = threadIdx.x / lanes, workers = stencil_block / lanes;
  const int64_t first_channel = (block - part * tiles) * lanes * V, channel = first_channel + lane * V;
  const int64_t strips = quotient(shape.out[2] + R - 1, int64_t(R));
  const int64_t all = shape.batches * shape.out[0] * shape.out[1] * strips, of_all = ranges * workers;
  const int64_t of_worker = quotient(all + of_all - 1, of_all), begin = (range * workers + worker) * of_worker;
  const int64_t end = channel < channels ? min(begin + of_worker, all) : begin;
  Wide sums[K][V] = {}, of_bias[V] = {};

  for (int64_t i = begin; i < end;) {
    int64_t row = quotient(i, strips), strip = i - row * strips, last = min(strip + end - i, strips);
    i += last - strip;
    int64_t plane = quotient(row, shape.out[1]), batch = quotient(plane, shape.out[0]);
    int64_t d = shape.read(0, plane - batch * shape.out[0], a), h = shape.read(1, row - plane * shape.out[1], b);
    const bool is_row = shape.is_inside(0, d) && shape.is_inside(1, h);
    if (!is_row && of_window > 0) continue;
    const T* of_y =
        dy + ((group * shape.batches * shape.out[0] * shape.out[1] + row) * shape.out[2]) * channels + channel;
    const T* of_x = conv.x + shape.x_index(group * shape.batches + batch, channel, (d * shape.in[1] + h) * shape.in[2]);
    for (; strip < last; ++strip) {
      const int64_t w = strip * R, first = shape.read(2, w, 0);
      auto add = [&](auto all_inside) {
        Wide cotangents[R][V] = {};
#pragma unroll
        for (int r = 0; r < R; ++r)
          if (all_inside || w + r < shape.out[2]) {
            auto values = load<V>(of_y + (w + r) * channels);
#pragma unroll
            for (int v = 0; v < V; ++v) cotangents[r][v] = Wide(values.lane[v]), of_bias[v] += cotangents[r][v];
          }
        if (!is_row) return;
#pragma unroll
        for (int p = 0; p < length; ++p) {
          if (!all_inside && !shape.is_inside(2, first + p)) continue;
          auto values = load<V>(of_x + (first + p) * channels);
#pragma unroll
          for (int c = 0; c < K; ++c) {
            const int r = (p - c) / S;
            if (p < c || r >= R || r * S + c != p || (!all_inside && w + r >= shape.out[2])) continue;
#pragma unroll
            for (int v = 0; v < V; ++v) sums[c][v] += cotangents[r][v] * Wide(values.lane[v]);
          }
        }
      };
      if (is_row && first >= 0 && first + length <= shape.in[2] && w + R <= shape.out[2])
        add(std::true_type{});
      else
        add(std::false_type{});
    }
  }

  const int64_t taps = shape.taps();
  for (int c = 0; c <= K; ++c) {
    const bool is_bias = c == K;
    if (c == size && !is_bias) continue;
    if (is_bias && of_window > 0) break;
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) {
      Wide sum = of_bias[v];
#pragma unroll
      for (int k = 0; k < K; ++k) sum = c == k ? sums[k][v] : sum;
      of_threads[threadIdx.x * V + v] = sum;
    }
    __syncthreads();
    Wide* to = parts + (part * (taps + 1) + (is_bias ? taps : of_window * size + c)) * channels + first_channel;
    for (int e = threadIdx.x; e < lanes * V; e += stencil_block) {
      if (first_channel + e >= channels) break;
      Wide total = 0;
      for (int other = 0; other < workers; ++other) total += of_threads[other * lanes * V + e];
      to[e] = total;
    }
  }
}

template <class T>
inline constexpr int strip_lanes = 16 / sizeof(T);

template <class T>
bool has_strips(const DepthwiseShape& shape) {
  int64_t size = shape.window[2];
  return shape.channels_last && shape.multiplier == 1 && shape.channels % strip_lanes<T> == 0 && size >= 2 &&
         size <= 7 && shape.dilation[2] == 1 && (shape.stride[2] == 1 || shape.stride[2] == 2);
}
template <class T>
bool has_strips_dx(const DepthwiseShape& shape) {
  return has_strips<T>(shape) && shape.stride[0] * shape.stride[1] * shape.stride[2] == 1;
}

// Calls run(size, stride) with those of the last axis.
template <class Run>
Status of_windows(const DepthwiseShape& shape, const Run& run) {
  auto of_size = [&](auto size) {
    return shape.stride[2] == 1 ? run(size, std::integral_constant<int, 1>{})
                                : run(size, std::integral_constant<int, 2>{});
  };
  if (shape.window[2] <= 3) return of_size(std::integral_constant<int, 3>{});
  if (shape.window[2] <= 5) return of_size(std::integral_constant<int, 5>{});
  return of_size(std::integral_constant<int, 7>{});
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
  work.vectors = shape.channels / V, work.size = int(shape.window[2]);
  return of_windows(shape, [&](auto size, auto stride) {
    work.strips = ceil_div(work.out[2], strip_positions<size>);
    work.total = shape.sequences() * work.out[0] * work.out[1] * work.strips * work.vectors;
    int64_t blocks = ceil_div(work.total, stencil_block);
    if (!is_grid(blocks)) return too_large();
    if (blocks == 0) return Status{};
    if constexpr (!is_dx || stride == 1)
      stencil_strips<size, stride, V, is_dx><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(work, to);
    return launched();
  });
}

// Of so many ranges, whose sums are added after.
template <class T>
Status run_strips_dweight(const Executor& executor, const Depthwise<T>& conv, const T* dy, Accumulator<T>* parts,
                          int64_t ranges) {
  const DepthwiseShape& shape = conv.shape;
  constexpr int V = std::min(4, strip_lanes<T>);
  int lanes = stencil_lanes<V>(shape.channels);
  int64_t tiles = ceil_div(shape.channels, lanes * V);
  int64_t blocks = shape.groups * ranges * tiles * shape.window[0] * shape.window[1];
  if (!is_grid(blocks)) return too_large();
  return of_windows(shape, [&](auto size, auto stride) {
    stencil_strips_dweight<size, stride, V>
        <<<unsigned(blocks), stencil_block, 0, executor.stream>>>(conv, dy, parts, lanes, tiles, ranges);
    return launched();
  });
}

}  // namespace internal
}  // namespace baracuda
