// The stencil pattern with the channels first. Forward, a thread has V neighbors along a row, of one vector load; or,
// of long rows, as many in each of several steps, in which its warp has neighboring vectors. So what is the same for a
// row, most of a thread's instructions, is computed once for all steps, and their loads are on the way together.
//
// Backward a warp walks a range of a row from its end, in steps of 32 vectors: what an element's gradient needs of
// those after it is in the next lanes, or was in the first lanes of the step before.
#pragma once

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

// A warp has so many times 32 neighboring vectors of a row.
inline constexpr int stencil_steps = 4;

template <int taps, int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_long_rows(const __grid_constant__ CausalConv<T> conv, T* y, int64_t vectors, int64_t parts, int64_t total) {
  using Wide = Accumulator<T>;
  constexpr int steps = stencil_steps;
  int64_t warp = int64_t(blockIdx.x) * (stencil_block / 32) + threadIdx.x / 32;
  if (warp >= total) return;
  int64_t row = quotient(warp, parts), part = warp - row * parts, begin = part * steps * 32 + threadIdx.x % 32;
  int64_t channel = conv.channel(row);
  RowVectors<taps, V, T> of_step[steps];
#pragma unroll
  for (int step = 0; step < steps; ++step) of_step[step].load_at(conv, row, min(begin + 32 * step, vectors - 1) * V);
  Wide factors[taps], bias = Wide(conv.bias[channel]);
  load_factors(conv, channel, factors);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    int64_t vector = begin + 32 * step, first = vector * V;
    if (vector >= vectors) break;
    Wide x[taps - 1 + V], z[V];
    // 32 vectors are more than there are elements before one.
    if (step == 0 && part == 0)
      of_step[step].template elements<true>(conv, row, first, x);
    else
      of_step[step].template elements<false>(conv, row, first, x);
    uint32_t starts = 0;
    if (conv.starts) starts = load_starts<taps, V>(conv, quotient(row, conv.shape.channels), first);
    convolve<taps, V>(conv, factors, bias, x, starts, z);
    if (conv.silu)
#pragma unroll
      for (int v = 0; v < V; ++v) z[v] = conv.of_silu(z[v]);
    Vector<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.lane[v] = T(z[v]);
    store<V>(y + row * conv.shape.length + first, out);
  }
}

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

}  // namespace internal
}  // namespace baracuda
