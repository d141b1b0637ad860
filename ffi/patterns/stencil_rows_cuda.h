// The stencil pattern with the channels first. Forward, a thread has V neighbors along a row, of one vector load; or,
// of long rows, as many in each of several steps, in which its warp has neighboring vectors. So what is the same for a
// row is computed once for all steps, and their loads are on the way together; what is before a vector comes from the
// lane before.
//
// Backward a warp walks a range of a channel's rows, of one batch after another, from its end, and adds up for the
// weights until then. What an element's gradient needs of those after it is in the next lanes, or was in the first
// lanes of the step before. The elements before a lane's are read again, from the first-level cache.
#pragma once

#include "stencil_neighbors_cuda.h"
#include "stencil_weights_cuda.h"

namespace baracuda {
namespace internal {

// The vectors that have the elements first - (taps - 1) ... first + V - 1 of a row, `first` being a multiple of V.
template <int taps, int V, class T>
struct RowVectors {
  static constexpr int history = taps - 1, before = (history + V - 1) / V;
  Vector<T, V> vector[before + 1];

  __device__ void load_at(const CausalConv<T>& conv, int64_t row, int64_t first) {
    const T* of_row = conv.x + row * conv.shape.length;
#pragma unroll
    for (int k = 0; k <= before; ++k) {
      int64_t begin = first + (k - before) * V;
      vector[k] = load<V>(of_row + (begin < 0 ? 0 : begin));  // loads that no condition delays
    }
  }
  // The elements; those of the state before 0, where a row may begin.
  template <bool may_begin>
  __device__ void elements(const CausalConv<T>& conv, int64_t row, int64_t first,
                           Accumulator<T> (&x)[history + V]) const {
#pragma unroll
    for (int k = 0; k <= before; ++k) {
      int64_t begin = first + (k - before) * V;
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (int i = history + (k - before) * V + v; i >= 0)
          x[i] = !may_begin || begin >= 0 ? Accumulator<T>(vector[k].lane[v]) : conv.before(row, begin + v);
    }
  }
};

template <int taps, int V, class T>
__device__ void load_row(const CausalConv<T>& conv, int64_t row, int64_t first, Accumulator<T> (&x)[taps - 1 + V]) {
  RowVectors<taps, V, T> vectors;
  vectors.load_at(conv, row, first);
  vectors.template elements<true>(conv, row, first, x);
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

// What kernels are compiled for: whether there are segments, and a width that is the number of taps.
template <bool segments, bool exact>
struct StencilKind {
  static constexpr bool has_segments = segments;
  static __device__ bool has_lag(const StencilShape& shape, int lag) { return exact || lag < shape.width; }
};

// z of V elements, of those of `load_row`.
template <class Kind, int taps, int V, class T>
__device__ void convolve(const CausalConv<T>& conv, const Accumulator<T> (&factors)[taps], Accumulator<T> bias,
                         const Accumulator<T> (&x)[taps - 1 + V], uint32_t starts, Accumulator<T> (&z)[V]) {
#pragma unroll
  for (int v = 0; v < V; ++v) z[v] = bias;
  auto add = [&](auto is_seen) {
#pragma unroll
    for (int lag = 0; lag < taps; ++lag) {
      if (!Kind::has_lag(conv.shape, lag)) break;
#pragma unroll
      for (int v = 0; v < V; ++v) z[v] += factors[lag] * (is_seen(v, lag) ? x[v + taps - 1 - lag] : Accumulator<T>(0));
    }
  };
  if (!Kind::has_segments || starts == 0)
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
  convolve<StencilKind<true, false>, taps, V>(conv, factors, Wide(conv.bias[channel]), x,
                                              load_starts<taps, V>(conv, quotient(row, conv.shape.channels), first), z);
  Vector<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v) out.lane[v] = T(conv.activated(z[v]));
  store<V>(y + row * conv.shape.length + first, out);
}

// Elements first - (taps - 1) ... first + V - 1 of a row, of the 32 neighboring vectors of a warp: what is before a
// lane's own is in the lanes before. The last lanes send what is before the first ones', `wrap`, from 32 vectors before
// their own.
template <int taps, int V, class T>
struct WarpRow {
  static constexpr int history = taps - 1, before = (history + V - 1) / V;

  static __device__ bool has_wrap() { return int(threadIdx.x % 32) >= 32 - before; }
  static __device__ void elements(const Neighbors<V, T>& own, const Neighbors<V, T>& wrap,
                                  Accumulator<T> (&x)[history + V]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int v = 0; v < V; ++v) x[history + v] = own[v];
#pragma unroll
    for (int back = 1; back <= history; ++back) {
      int lanes = (back + V - 1) / V, of_lane = lanes * V - back;
      Accumulator<T> sent = lane >= 32 - lanes ? wrap[of_lane] : x[history + of_lane];
      x[history - back] = __shfl_sync(~0u, sent, (lane + 32 - lanes) % 32);
    }
  }
  // The first elements of a row: before them is the state.
  static __device__ void begin_row(const CausalConv<T>& conv, int64_t row, Accumulator<T> (&x)[history + V]) {
    int first = threadIdx.x % 32 * V;
#pragma unroll
    for (int back = 1; back <= history; ++back)
      if (first < back) x[history - back] = conv.before(row, first - back);
  }
};

// A warp has so many times 32 neighboring vectors of a row.
inline constexpr int stencil_steps = 4;

template <class Kind, int taps, int V, class T>
__global__ void __launch_bounds__(stencil_block, sizeof(T) == 8       ? 3
                                                 : Kind::has_segments ? 4
                                                                      : 5)
    stencil_long_rows(const __grid_constant__ CausalConv<T> conv, T* y, int64_t parts, int64_t total) {
  using Wide = Accumulator<T>;
  using Row = WarpRow<taps, V, T>;
  constexpr int steps = stencil_steps, step = 32 * V;
  int64_t warp = int64_t(blockIdx.x) * (stencil_block / 32) + threadIdx.x / 32;
  if (warp >= total) return;
  int64_t row = quotient(warp, parts), begin = (warp - row * parts) * steps * step;
  int lane = threadIdx.x % 32, count = int(min(int64_t(steps * step), conv.shape.length - begin));
  const T* x_row = conv.x + row * conv.shape.length + begin;
  T* y_row = y + row * conv.shape.length + begin;
  Neighbors<V, T> own[steps], before{};
  if (begin > 0 && Row::has_wrap()) before.read(x_row + (lane - 32) * V);
#pragma unroll
  for (int k = 0; k < steps; ++k) own[k].read(x_row + min(k * step + lane * V, count - V));
  int64_t channel = conv.channel(row);  // while elements are on the way
  Wide factors[taps], bias = Wide(conv.bias[channel]);
  load_factors(conv, channel, factors);
#pragma unroll
  for (int k = 0; k < steps; ++k) {
    int first = k * step + lane * V;
    Wide x[taps - 1 + V], z[V];
    Row::elements(own[k], k == 0 ? before : own[k == 0 ? 0 : k - 1], x);
    if (k == 0 && begin == 0) Row::begin_row(conv, row, x);
    uint32_t starts = 0;
    if constexpr (Kind::has_segments)
      starts = load_starts<taps, V>(conv, quotient(row, conv.shape.channels), begin + first);
    convolve<Kind, taps, V>(conv, factors, bias, x, starts, z);
    if (conv.silu)
#pragma unroll
      for (int v = 0; v < V; ++v) z[v] = conv.of_silu(z[v]);
    Vector<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.lane[v] = T(z[v]);
    if (first < count) store<V>(y_row + first, out);
  }
}

// How the gradient's warps share the rows: a warp, which is a block, has one of `ranges` of a channel's rows, of so
// many batches, and walks from the end of a range in `steps` of 32 vectors.
struct RowRanges {
  uint32_t ranges, splits;
  int64_t batches;
  int steps;
};

// What a step reads: a lane's vectors of x and dy, and those of x that have the elements before.
template <int taps, int V, class T>
struct RowStep {
  static constexpr int history = taps - 1, count = (history + V - 1) / V;
  Neighbors<V, T> x, dy, before[count];

  // So many vectors of the row are before.
  __device__ void read(const T* of_x, const T* of_y, int vectors) {
    x.read(of_x);
    dy.read(of_y);
#pragma unroll
    for (int k = 0; k < count; ++k) before[k].read(of_x - (vectors > k ? (k + 1) * V : 0));
  }
  __device__ void elements(Accumulator<T> (&all)[history + V]) const {
#pragma unroll
    for (int v = 0; v < V; ++v) all[history + v] = x[v];
#pragma unroll
    for (int back = 1; back <= history; ++back) {
      int vector = (back - 1) / V;
      all[history - back] = before[vector][(vector + 1) * V - back];
    }
  }
};

template <class Kind, int taps, int V, class T>
__global__ void __launch_bounds__(32, sizeof(T) == 8                   ? 10
                                      : taps > 4 || Kind::has_segments ? 16
                                                                       : 32)
    stencil_rows_backward(const __grid_constant__ CausalConv<T> conv, const T* dy, T* dx, T* dstate,
                          StencilParts<T> parts, RowRanges of) {
  using Wide = Accumulator<T>;
  constexpr int history = taps - 1, step = 32 * V;
  const StencilShape& shape = conv.shape;
  next_may_begin();
  int lane = threadIdx.x;
  uint32_t rest = blockIdx.x / of.ranges, range = blockIdx.x - rest * of.ranges;
  uint32_t part = rest / uint32_t(shape.channels), c = rest - part * uint32_t(shape.channels);
  uint32_t group = part / of.splits, split = part - group * of.splits;
  int64_t channel = group * shape.channels + c, batch = split * of.batches;
  int64_t sequence = group * shape.batches + batch, row = sequence * shape.channels + c;
  int rows = int(min(of.batches, shape.batches - batch));
  int64_t begin = range * int64_t(of.steps) * step, end = min(begin + of.steps * int64_t(step), shape.length);
  // Where another range follows, the step after: of its first elements the gradients here need dz.
  int own = int((end - begin + step - 1) / step), last = end < shape.length ? own : own - 1;
  // The last step may not be whole: its lanes after the row read what the first lane does.
  int64_t in_row = begin + last * int64_t(step) + lane * V;
  bool is_there = in_row < shape.length;
  int shift = is_there ? 0 : lane * V, vectors = begin > 0 ? history : last == 0 && !is_there ? 0 : lane;
  const T* from = conv.x + row * shape.length + in_row;
  RowStep<taps, V, T> steps[2];
  auto read = [&](RowStep<taps, V, T>& next, int i) {
    const T* of_x = i == last ? from - shift : from;
    next.read(of_x, dy + (of_x - conv.x), i == 0 ? vectors : history);
  };
  if (last >= 0) read(steps[0], last);
  Wide factors[taps], bias = Wide(conv.bias[channel]), sums[taps + 1] = {};
  load_factors(conv, channel, factors);
  if (shape.length == 0)
    for (int r = 0; r < rows; ++r)
      if (lane < shape.width - 1) dstate[(row + r * shape.channels) * (shape.width - 1) + lane] = T(Wide(0));
  Wide after[history] = {};  // of the last lanes: dz of the step's elements after theirs
  int left = last < 0 ? 0 : rows * (last + 1), i = last;
  auto walk = [&](const RowStep<taps, V, T>& now, RowStep<taps, V, T>& next) {
    bool is_last = i == 0;
    int64_t at = from - conv.x;
    from += is_last ? shape.channels * shape.length + last * int64_t(step) : -int64_t(step);
    if (left > 1) read(next, is_last ? last : i - 1);
    Wide x[history + V], z[V], dz[V];
    now.elements(x);
    if (is_last && begin == 0) WarpRow<taps, V, T>::begin_row(conv, row, x);
    uint32_t starts = 0;
    if constexpr (Kind::has_segments) starts = load_starts<taps, V>(conv, sequence, at - row * shape.length);
    convolve<Kind, taps, V>(conv, factors, bias, x, starts, z);
    if (conv.silu) {
#pragma unroll
      for (int v = 0; v < V; ++v) dz[v] = conv.slope_of_silu(z[v]) * now.dy[v];
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v) dz[v] = now.dy[v];
    }
    if (i == last && !is_there) {
      asm volatile("");  // a branch, instead of a choice for each number
#pragma unroll
      for (int v = 0; v < V; ++v) dz[v] = 0;
#pragma unroll
      for (int k = 0; k < history + V; ++k) x[k] = 0;  // what was read may be infinite
    }
    // dz of the elements after the lane's: those after the warp's were the first lanes' of the step before.
    Wide all[V + history];
#pragma unroll
    for (int v = 0; v < V; ++v) all[v] = dz[v];
#pragma unroll
    for (int j = 0; j < history; ++j) {
      int lanes = 1 + j / V;
      Wide sent = __shfl_sync(~0u, dz[j % V], (lane + lanes) % 32);
      all[V + j] = lane + lanes < 32 ? sent : after[j];
      after[j] = sent;
    }
    if (i < own) {
      Wide d[V] = {};
#pragma unroll
      for (int lag = 0; lag < taps; ++lag) {
        if (!Kind::has_lag(shape, lag)) break;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (!Kind::has_segments || is_same_segment<taps>(starts, v, lag)) sums[lag] += dz[v] * x[v + history - lag];
          if (!Kind::has_segments || is_same_segment<taps>(starts, v + lag, lag)) d[v] += factors[lag] * all[v + lag];
        }
      }
      Vector<T, V> out;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        sums[taps] += dz[v];
        out.lane[v] = T(d[v]);
      }
      if (i != last || is_there) store<V>(dx + at, out);
    }
    if (is_last) {
      if (begin == 0) {  // the state's, of the first elements
        Wide first[history];
#pragma unroll
        for (int j = 0; j < history; ++j) first[j] = __shfl_sync(~0u, dz[j % V], j / V);
        starts = Kind::has_segments ? load_starts<taps, 1>(conv, sequence, 0) : 0;
#pragma unroll
        for (int back = 1; back < taps; ++back) {
          Wide d = 0;
#pragma unroll
          for (int lag = back; lag < taps; ++lag)
            if (Kind::has_lag(shape, lag) && is_same_segment<taps>(starts, lag - back, lag - back))
              d += factors[lag] * first[lag - back];
          if (lane == 0 && Kind::has_lag(shape, back)) dstate[row * (shape.width - 1) + shape.width - 1 - back] = T(d);
        }
      }
#pragma unroll
      for (int j = 0; j < history; ++j) after[j] = 0;
      row += shape.channels, ++sequence, i = last;
    } else {
      --i;
    }
    --left;
  };
  while (left > 0) {
    walk(steps[0], steps[1]);
    if (left == 0) break;
    walk(steps[1], steps[0]);
  }
#pragma unroll
  for (int lag = 0; lag <= taps; ++lag) {
    Wide of_lag = sums[lag];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) of_lag += __shfl_xor_sync(~0u, of_lag, distance);
    if (lane == 0) *parts.template at<taps>(shape, group, int64_t(split) * of.ranges + range, lag, c) = of_lag;
  }
}

}  // namespace internal
}  // namespace baracuda
