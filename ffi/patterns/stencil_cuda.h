// The stencil pattern on a CUDA grid. Forward, a thread has V neighbors of one vector load: along the row with the
// channels first, and the same number of channels at 32 positions with the channels last.
//
// Backward with the channels first a warp walks a range of a row from its end, in steps of 32 vectors: what an
// element's gradient needs of those after it is in the next lanes, or was in the first lanes of the step before. With
// the channels last a thread walks V channels from the beginning of a range, and each position adds to the elements
// before it, which are in registers. What a range gives for weights is written, and added by a second kernel in the
// order of ranges.
#pragma once

#include <algorithm>

#include "../kernels/causal_conv.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int stencil_block = 256, stencil_range = 32;

template <int taps, class T>
__device__ void load_factors(const CausalConv<T>& conv, int64_t channel, Accumulator<T> (&factors)[taps]) {
#pragma unroll
  for (int lag = 0; lag < taps; ++lag)
    factors[lag] = lag < conv.shape.width ? conv.factor(channel, lag) : Accumulator<T>(0);
}

// The elements first - (taps - 1) ... first + V - 1 of a row, `first` being a multiple of V: those of the state before
// 0.
template <int taps, int V, class T>
__device__ void load_row(const CausalConv<T>& conv, int64_t row, int64_t first, Accumulator<T> (&x)[taps - 1 + V]) {
  constexpr int history = taps - 1, vectors = (history + V - 1) / V;
  const T* of_row = conv.x + row * conv.shape.length;
#pragma unroll
  for (int k = -vectors; k <= 0; ++k) {
    int64_t begin = first + k * V;
    Vector<T, V> values = load<V>(of_row + (begin < 0 ? 0 : begin));  // loads that no condition delays
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (int i = history + k * V + v; i >= 0)
        x[i] = begin >= 0 ? Accumulator<T>(values.lane[v]) : conv.before(row, begin + v);
  }
}

// Whether each element first - (taps - 2) ... first + V + taps - 2 begins a segment, as bits.
template <int taps, int V, class T>
__device__ uint32_t load_starts(const CausalConv<T>& conv, int64_t sequence, int64_t first) {
  uint32_t bits = 0;
  if (!conv.starts) return bits;
#pragma unroll
  for (int i = 0; i < V + 2 * taps - 3; ++i) bits |= uint32_t(conv.is_start(sequence, first - (taps - 2) + i)) << i;
  return bits;
}

// Whether no segment begins after element first + at - lag up to first + at.
template <int taps>
__device__ bool is_same_segment(uint32_t starts, int at, int lag) {
  return (starts >> (at - lag + 1 + taps - 2) & ((1u << lag) - 1)) == 0;
}

// z of V elements, of those of `load_row`.
template <int taps, int V, class T>
__device__ void convolve(const CausalConv<T>& conv, const Accumulator<T> (&factors)[taps], Accumulator<T> bias,
                         const Accumulator<T> (&x)[taps - 1 + V], uint32_t starts, Accumulator<T> (&z)[V]) {
#pragma unroll
  for (int v = 0; v < V; ++v) z[v] = bias;
  auto add = [&](auto is_seen) {
#pragma unroll
    for (int lag = 0; lag < taps; ++lag) {
      if (lag >= conv.shape.width) break;
#pragma unroll
      for (int v = 0; v < V; ++v) z[v] += factors[lag] * (is_seen(v, lag) ? x[v + taps - 1 - lag] : Accumulator<T>(0));
    }
  };
  if (starts == 0)
    add([](int, int) { return true; });
  else
    add([&](int v, int lag) { return is_same_segment<taps>(starts, v, lag); });
}

template <int taps, int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_rows(CausalConv<T> conv, T* y, int64_t vectors, int64_t total) {
  using Wide = Accumulator<T>;
  int64_t index = int64_t(blockIdx.x) * stencil_block + threadIdx.x;
  if (index >= total) return;
  int64_t row = quotient(index, vectors), first = (index - row * vectors) * V, channel = conv.channel(row);
  Wide factors[taps], x[taps - 1 + V], z[V];
  load_row<taps, V>(conv, row, first, x);
  load_factors(conv, channel, factors);
  convolve<taps, V>(conv, factors, Wide(conv.bias[channel]), x,
                    load_starts<taps, V>(conv, quotient(row, conv.shape.channels), first), z);
  Vector<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v) out.lane[v] = T(conv.activated(z[v]));
  store<V>(y + row * conv.shape.length + first, out);
}

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
    stencil_channels(CausalConv<T> conv, T* y, int64_t vectors, int64_t ranges, int64_t total) {
  using Wide = Accumulator<T>;
  const StencilShape& shape = conv.shape;
  int64_t index = int64_t(blockIdx.x) * stencil_block + threadIdx.x;
  if (index >= total) return;
  int64_t range = index / vectors, sequence = range / ranges, begin = (range - sequence * ranges) * stencil_range;
  int64_t end = min(begin + stencil_range, shape.length);
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

// A warp has a range of so many steps of a row.
template <int taps, int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_rows_backward(CausalConv<T> conv, const T* dy, T* dx, T* dstate, StencilParts<T> parts, int64_t ranges,
                          int64_t steps, int64_t total) {
  using Wide = Accumulator<T>;
  constexpr int history = taps - 1, step = 32 * V;
  const StencilShape& shape = conv.shape;
  int64_t warp = int64_t(blockIdx.x) * (stencil_block / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (warp >= total) return;
  int64_t row = warp / ranges, range = warp - row * ranges, sequence = row / shape.channels;
  int64_t begin = range * steps * step, end = min(begin + steps * step, shape.length), channel = conv.channel(row);
  Wide factors[taps], bias = Wide(conv.bias[channel]), sums[taps + 1] = {}, dz[V] = {}, after[V];
  load_factors(conv, channel, factors);
  // One step more, of what is after the range: of its first elements alone, and without results.
  for (int64_t at = begin + (end - begin + step - 1) / step * step; at >= begin; at -= step) {
    bool is_own = at < end;
    int64_t first = at + lane * V;
    bool is_read = first < shape.length && (is_own || lane * V < history);
    Wide x[history + V], z[V];
    uint32_t starts = 0;
    Vector<T, V> of_y{};
    if (is_read) {
      load_row<taps, V>(conv, row, first, x);
      of_y = load<V>(dy + row * shape.length + first);
      starts = load_starts<taps, V>(conv, sequence, first);
      convolve<taps, V>(conv, factors, bias, x, starts, z);
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      after[v] = dz[v];
      dz[v] = is_read ? conv.slope(z[v], Wide(of_y.lane[v])) : Wide(0);
    }
    if (!is_own) continue;
    // dz of the elements after the lane's: the lanes that the last ones read have those of the step before.
    Wide all[V + history];
#pragma unroll
    for (int v = 0; v < V; ++v) all[v] = dz[v];
#pragma unroll
    for (int j = 0; j < history; ++j) {
      Wide sent = lane <= j / V ? after[j % V] : dz[j % V];
      all[V + j] = __shfl_sync(~0u, sent, (lane + 1 + j / V) % 32);
    }
    if (!is_read) continue;
    Wide d[V] = {};
#pragma unroll
    for (int lag = 0; lag < taps; ++lag) {
      if (lag >= shape.width) break;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if (is_same_segment<taps>(starts, v, lag)) sums[lag] += dz[v] * x[v + history - lag];
        if (is_same_segment<taps>(starts, v + lag, lag)) d[v] += factors[lag] * all[v + lag];
      }
    }
    Vector<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sums[taps] += dz[v];
      out.lane[v] = T(d[v]);
    }
    store<V>(dx + row * shape.length + first, out);
  }
  if (begin == 0) {  // the state's, of the first elements, which are in the first lanes
    Wide first[history];
#pragma unroll
    for (int j = 0; j < history; ++j) first[j] = __shfl_sync(~0u, dz[j % V], j / V);
    uint32_t starts = load_starts<taps, 1>(conv, sequence, 0);
    if (lane == 0) {
#pragma unroll
      for (int back = 1; back < taps; ++back) {
        Wide d = 0;
#pragma unroll
        for (int lag = back; lag < taps; ++lag)
          if (lag < shape.width && is_same_segment<taps>(starts, lag - back, lag - back))
            d += factors[lag] * first[lag - back];
        if (back < shape.width) dstate[row * (shape.width - 1) + shape.width - 1 - back] = T(d);
      }
    }
  }
  int64_t group = sequence / shape.batches, part = (sequence - group * shape.batches) * ranges + range;
#pragma unroll
  for (int lag = 0; lag <= taps; ++lag) {
    Wide total_of_lag = sums[lag];
    for (int distance = 16; distance > 0; distance /= 2) total_of_lag += __shfl_xor_sync(~0u, total_of_lag, distance);
    if (lane == 0) *parts.template at<taps>(shape, group, part, lag, channel - group * shape.channels) = total_of_lag;
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

// Calls run(taps): the usual width of 4 or less has fewer registers.
template <class Run>
Status by_taps(int width, const Run& run) {
  if (width <= 4) return run(std::integral_constant<int, 4>{});
  return run(std::integral_constant<int, most_taps>{});
}

inline Status too_large() { return {"the grid would have more than 2^31 - 1 blocks"}; }
inline bool is_grid(int64_t blocks) { return blocks < (int64_t(1) << 31); }

// So many ranges of at least `least` elements along sequences that `rows` warps would leave the GPU partly idle.
inline int64_t stencil_ranges(int64_t length, int64_t rows, int64_t least) {
  constexpr int64_t enough = 8192;  // warps
  int64_t most = std::max<int64_t>(1, length / least);
  return std::clamp<int64_t>(ceil_div(enough, std::max<int64_t>(rows, 1)), 1, most);
}

}  // namespace internal

template <class T>
Status stencil(const Executor& executor, const CausalConv<T>& conv, T* y) {
  using namespace internal;
  constexpr int most = 16 / sizeof(T);
  const StencilShape& shape = conv.shape;
  if (shape.rows() * shape.length == 0) return {};
  int64_t neighbors = shape.channels_last ? shape.channels : shape.length;
  return by_taps(shape.width, [&](auto taps_of) {
    constexpr int taps = decltype(taps_of)::value;
    auto run = [&](auto width) {
      constexpr int V = decltype(width)::value;
      int64_t vectors = neighbors / V, ranges = shape.channels_last ? ceil_div(shape.length, stencil_range) : 1;
      int64_t total = vectors * (shape.channels_last ? shape.sequences() * ranges : shape.rows());
      int64_t blocks = ceil_div(total, stencil_block);
      if (!is_grid(blocks)) return too_large();
      if (shape.channels_last)
        stencil_channels<taps, V>
            <<<unsigned(blocks), stencil_block, 0, executor.stream>>>(conv, y, vectors, ranges, total);
      else
        stencil_rows<taps, V><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(conv, y, vectors, total);
      return launched();
    };
    // A window of eight and as many factors for each of eight channels would not be in registers.
    constexpr int V = taps > 4 ? std::max(1, most / 2) : most;
    return neighbors % V == 0 ? run(std::integral_constant<int, V>{}) : run(std::integral_constant<int, 1>{});
  });
}

template <class T>
Status stencil_backward(Executor executor, const CausalConv<T>& conv, const T* dy, T* dx, T* dweight, T* dbias,
                        T* dstate) {
  using namespace internal;
  constexpr int most = 16 / sizeof(T);
  const StencilShape& shape = conv.shape;
  if (shape.groups * shape.channels == 0) return {};
  return by_taps(shape.width, [&](auto taps_of) {
    constexpr int taps = decltype(taps_of)::value, warps = stencil_block / 32;
    StencilParts<T> parts{};
    auto have_parts = [&](int64_t count) {
      parts.parts = count;
      parts.sums = executor.scratch<Accumulator<T>>(shape.groups * count * (taps + 1) * shape.channels);
      return parts.sums != nullptr;
    };
    auto rows = [&](auto width) {
      constexpr int V = decltype(width)::value;
      int64_t step = 32 * V, all_steps = std::max<int64_t>(1, ceil_div(shape.length, step));
      // By the shape of one group: results are the same in any company.
      int64_t wanted = stencil_ranges(shape.length, shape.batches * shape.channels, 4 * step);
      int64_t steps = ceil_div(all_steps, wanted), ranges = ceil_div(all_steps, steps), total = shape.rows() * ranges;
      if (!have_parts(shape.batches * ranges)) return small_workspace;
      int64_t blocks = ceil_div(total, warps);
      if (!is_grid(blocks)) return too_large();
      if (blocks)
        stencil_rows_backward<taps, V><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(
            conv, dy, dx, dstate, parts, ranges, steps, total);
      return launched();
    };
    auto channels = [&](auto width) {
      constexpr int V = decltype(width)::value;
      int64_t tiles = ceil_div(shape.channels, 32 * V);
      int64_t wanted = stencil_ranges(shape.length, shape.batches * tiles, 64);
      int64_t positions = ceil_div(std::max<int64_t>(1, ceil_div(shape.length, wanted)), taps) * taps;
      int64_t blocks = std::max<int64_t>(1, ceil_div(shape.length, positions * warps));
      if (!have_parts(shape.batches * blocks)) return small_workspace;
      int64_t grid = shape.sequences() * blocks * tiles;
      if (!is_grid(grid)) return too_large();
      if (grid)
        stencil_channels_backward<taps, V><<<unsigned(grid), stencil_block, 0, executor.stream>>>(
            conv, dy, dx, dstate, parts, tiles, blocks, positions);
      return launched();
    };
    Status status;
    if (shape.channels_last) {
      // Of each channel there are four arrays of `taps` in registers.
      constexpr int V = std::max(1, std::min(most, (taps > 4 ? 2 : 4) * 4 / int(sizeof(Accumulator<T>))));
      status = shape.channels % V == 0 ? channels(std::integral_constant<int, V>{})
                                       : channels(std::integral_constant<int, 1>{});
    } else {
      status =
          shape.length % most == 0 ? rows(std::integral_constant<int, most>{}) : rows(std::integral_constant<int, 1>{});
    }
    if (!status.ok()) return status;
    int64_t tiles = ceil_div(shape.channels, 32);
    if (!is_grid(shape.groups * tiles)) return too_large();
    stencil_weights<taps><<<dim3(unsigned(shape.groups * tiles), taps + 1), stencil_block, 0, executor.stream>>>(
        shape, parts, dweight, dbias, tiles);
    return launched();
  });
}

}  // namespace baracuda
