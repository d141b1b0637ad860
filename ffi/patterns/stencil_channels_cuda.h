// The stencil pattern with the channels last. Forward, a thread has V neighboring channels, of one vector load, at 32
// positions, or fewer where that leaves too few threads.
//
// Backward a thread walks V channels from the beginning of a range, and each position adds to the elements before it,
// which are in registers.
#pragma once

#include "stencil_weights_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int stencil_range = 32, stencil_enough_threads = 132 * 256;

// V neighboring channels of a sequence, with the channels last. Windows are rings of `taps` positions, whose indices
// the compiler knows: ranges begin at multiples of taps.
template <int taps, int V, class T>
struct StencilLanes {
  using Wide = Accumulator<T>;
  const CausalConv<T>& conv;
  int64_t sequence, first;
  Wide factors[V][taps], bias[V];

  __device__ StencilLanes(const CausalConv<T>& conv, int64_t sequence, int64_t first)
      : conv(conv), sequence(sequence), first(first) {
    int64_t channel = sequence / conv.shape.batches * conv.shape.channels + first;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      load_factors(conv, channel + v, factors[v]);
      bias[v] = Wide(conv.bias[channel + v]);
    }
  }
  __device__ int64_t element(int64_t position) const {
    return (sequence * conv.shape.length + position) * conv.shape.channels + first;
  }
  // The elements before a range, in the slots that their positions have.
  __device__ void load_before(int64_t begin, Wide (&window)[taps][V]) const {
#pragma unroll
    for (int slot = 1; slot < taps; ++slot) {
      int64_t position = begin - taps + slot;
      Vector<T, V> values{};
      if (position >= 0) values = load<V>(conv.x + element(position));
#pragma unroll
      for (int v = 0; v < V; ++v)
        window[slot][v] =
            position >= 0 ? Wide(values.lane[v]) : conv.before(sequence * conv.shape.channels + first + v, position);
    }
  }
  // How many elements of its segment are before the range, or as many as matter.
  __device__ int count_before(int64_t begin) const {
    int count = taps;
    for (int lag = taps - 1; lag > 0; --lag)
      if (conv.is_start(sequence, begin - lag)) count = lag - 1;
    return count;
  }
  // Of the position in ring slot i, of whose segment so many elements are before.
  template <int i>
  __device__ void convolve(const Wide (&window)[taps][V], int before, Wide (&z)[V]) const {
#pragma unroll
    for (int v = 0; v < V; ++v) z[v] = bias[v];
#pragma unroll
    for (int lag = 0; lag < taps; ++lag) {
      if (lag >= conv.shape.width || lag > before) break;
#pragma unroll
      for (int v = 0; v < V; ++v) z[v] += factors[v][lag] * window[(i - lag + taps) % taps][v];
    }
  }
};

// Calls body(integral_constant<int, i>) for i = 0 ... count - 1.
template <int count, int i = 0, class Body>
__device__ void unrolled(const Body& body) {
  if constexpr (i < count) {
    body(std::integral_constant<int, i>{});
    unrolled<count, i + 1>(body);
  }
}

template <int taps, int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_channels(CausalConv<T> conv, T* y, int64_t vectors, int64_t ranges, int positions, int64_t total) {
  using Wide = Accumulator<T>;
  const StencilShape& shape = conv.shape;
  int64_t index = int64_t(blockIdx.x) * stencil_block + threadIdx.x;
  if (index >= total) return;
  int64_t range = index / vectors, sequence = range / ranges, begin = (range - sequence * ranges) * positions;
  int64_t end = min(begin + positions, shape.length);
  StencilLanes<taps, V, T> lanes(conv, sequence, (index - range * vectors) * V);
  Wide window[taps][V];
  lanes.load_before(begin, window);
  int before = lanes.count_before(begin);
  for (int64_t l = begin; l < end; l += taps) {
    Vector<T, V> next[taps];
#pragma unroll
    for (int i = 0; i < taps; ++i)
      if (l + i < end) next[i] = load<V>(conv.x + lanes.element(l + i));
    unrolled<taps>([&](auto slot) {
      constexpr int i = decltype(slot)::value;
      if (l + i >= end) return;
      before = conv.is_start(sequence, l + i) ? 0 : min(before + 1, taps);
      Wide z[V];
#pragma unroll
      for (int v = 0; v < V; ++v) window[i][v] = Wide(next[i].lane[v]);
      lanes.template convolve<i>(window, before, z);
      Vector<T, V> out;
#pragma unroll
      for (int v = 0; v < V; ++v) out.lane[v] = T(conv.activated(z[v]));
      store<V>(y + lanes.element(l + i), out);
    });
  }
}

// A block has 32 vectors of channels and as many ranges as it has warps, whose sums for weights it adds in order.
template <int taps, int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_channels_backward(CausalConv<T> conv, const T* dy, T* dx, T* dstate, StencilParts<T> parts, int64_t tiles,
                              int64_t blocks, int64_t positions) {
  using Wide = Accumulator<T>;
  constexpr int history = taps - 1, warps = stencil_block / 32;
  __shared__ Wide of_warps[warps][taps + 1][32 * V];
  const StencilShape& shape = conv.shape;
  int64_t block = int64_t(blockIdx.x) / tiles, tile = int64_t(blockIdx.x) - block * tiles;
  int64_t sequence = block / blocks, group = sequence / shape.batches;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t first = (tile * 32 + lane) * V;
  int64_t begin = ((block - sequence * blocks) * warps + warp) * positions, end = min(begin + positions, shape.length);
  Wide sums[V][taps + 1] = {};
  // The first range has the state, also of an empty sequence.
  if (first < shape.channels && (begin < end || begin == 0)) {
    StencilLanes<taps, V, T> lanes(conv, sequence, first);
    Wide window[taps][V], added[taps][V] = {};
    lanes.load_before(begin, window);
    int before = lanes.count_before(begin);
    for (int64_t l = begin; l < end + history; l += taps) {
      Vector<T, V> next[taps], of_y[taps];
#pragma unroll
      for (int i = 0; i < taps; ++i) {
        if (l + i >= min(end + history, shape.length)) continue;
        next[i] = load<V>(conv.x + lanes.element(l + i));
        of_y[i] = load<V>(dy + lanes.element(l + i));
      }
      unrolled<taps>([&](auto slot) {
        constexpr int i = decltype(slot)::value;
#pragma unroll
        for (int v = 0; v < V; ++v) added[i][v] = 0;
        if (l + i < min(end + history, shape.length)) {
          before = conv.is_start(sequence, l + i) ? 0 : min(before + 1, taps);
          Wide z[V], dz[V];
#pragma unroll
          for (int v = 0; v < V; ++v) window[i][v] = Wide(next[i].lane[v]);
          lanes.template convolve<i>(window, before, z);
#pragma unroll
          for (int v = 0; v < V; ++v) {
            dz[v] = conv.slope(z[v], Wide(of_y[i].lane[v]));
            if (l + i < end) sums[v][taps] += dz[v];
          }
#pragma unroll
          for (int lag = 0; lag < taps; ++lag) {
            if (lag >= shape.width || lag > before) break;
#pragma unroll
            for (int v = 0; v < V; ++v) {
              if (l + i < end) sums[v][lag] += dz[v] * window[(i - lag + taps) % taps][v];
              added[(i - lag + taps) % taps][v] += lanes.factors[v][lag] * dz[v];
            }
          }
        }
        // Nothing more is added to the oldest.
        constexpr int oldest = (i + 1) % taps;
        int64_t position = l + i - history;
        if (position >= begin && position < end) {
          Vector<T, V> out;
#pragma unroll
          for (int v = 0; v < V; ++v) out.lane[v] = T(added[oldest][v]);
          store<V>(dx + lanes.element(position), out);
        } else if (begin == 0 && position < 0 && position >= 1 - shape.width) {
#pragma unroll
          for (int v = 0; v < V; ++v)
            dstate[(sequence * shape.channels + first + v) * (shape.width - 1) + shape.width - 1 + position] =
                T(added[oldest][v]);
        }
      });
    }
  }
#pragma unroll
  for (int v = 0; v < V; ++v)
#pragma unroll
    for (int lag = 0; lag <= taps; ++lag) of_warps[warp][lag][lane * V + v] = sums[v][lag];
  __syncthreads();
  int64_t part = (sequence - group * shape.batches) * blocks + block - sequence * blocks;
  for (int i = threadIdx.x; i < (taps + 1) * 32 * V; i += stencil_block) {
    int lag = i / (32 * V), c = i - lag * 32 * V;
    int64_t channel = tile * 32 * V + c;
    if (channel >= shape.channels) continue;
    Wide total = 0;
    for (int w = 0; w < warps; ++w) total += of_warps[w][lag][c];
    *parts.template at<taps>(shape, group, part, lag, channel) = total;
  }
}

}  // namespace internal
}  // namespace baracuda
