// The stencil pattern with windows, on a CUDA grid. Usual windows have kernels of their own: with strides of 1, for
// channels first and last (stencil_window_walks_cuda.h); else with the channels first (stencil_window_planes_cuda.h)
// and last (stencil_window_channels_cuda.h). Here are the others: a thread has an element of the result, or a vector of
// neighboring channels that are last, and reads its window. Sums for weights are added by blocks, each of a range of
// positions, and then in the order of ranges.
//
// Causal convolutions (stencil_cuda.h) are no case of it: they have a state before x, segments and an activation, whose
// slope their gradient needs at each element before it can be added to others. Their sums for weights are added by the
// same kernel.
#pragma once

#include <algorithm>

#include "stencil_window_channels_cuda.h"
#include "stencil_window_planes_cuda.h"
#include "stencil_window_walks_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int weights_at_once = 9;

// Element `index` of an array with so many elements in a plane, in vectors: the first channel and the position.
template <int V>
struct WindowElement {
  int64_t sequence, channel, position;
  __device__ WindowElement(int64_t index, int64_t channels, int64_t plane, bool channels_last) {
    int64_t inner = channels_last ? channels / V : plane, rest = quotient(index, inner);
    int64_t outer = channels_last ? plane : channels, at = index - rest * inner;
    sequence = quotient(rest, outer);
    int64_t other = rest - sequence * outer;
    channel = channels_last ? at * V : other, position = channels_last ? other : at;
  }
};

template <int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_windows(Depthwise<T> conv, const T* bias, T* y, int64_t total) {
  const DepthwiseShape& shape = conv.shape;
  int64_t index = int64_t(blockIdx.x) * stencil_block + threadIdx.x;
  if (index >= total) return;
  WindowElement<V> at(index, shape.outputs(), shape.out_plane(), shape.channels_last);
  store<V>(y + index * V, conv.template y_at<V>(bias, at.sequence, at.channel, PlanePosition(at.position, shape.out)));
}

template <int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_windows_dx(Depthwise<T> conv, const T* dy, T* dx, int64_t total) {
  const DepthwiseShape& shape = conv.shape;
  int64_t index = int64_t(blockIdx.x) * stencil_block + threadIdx.x;
  if (index >= total) return;
  WindowElement<V> at(index, shape.channels, shape.in_plane(), shape.channels_last);
  store<V>(dx + index * V, conv.template dx_at<V>(dy, at.sequence, at.channel, PlanePosition(at.position, shape.in)));
}

// A block has nine taps of `lanes` vectors of channels, or of one channel, and a range of positions, at which its
// threads with the same channels take turns. lanes is a power of two; the sums of these threads are added as a tree.
template <int V, class T>
__global__ void __launch_bounds__(stencil_block)
    stencil_windows_dweight(Depthwise<T> conv, const T* dy, Accumulator<T>* parts, int lanes, int64_t tiles,
                            int64_t ranges) {
  using Wide = Accumulator<T>;
  __shared__ Wide of_threads[stencil_block][V];
  const DepthwiseShape& shape = conv.shape;
  int64_t taps = shape.taps(), first = int64_t(blockIdx.y) * weights_at_once;
  int64_t rest = int64_t(blockIdx.x) / tiles, group = quotient(rest, ranges), range = rest - group * ranges;
  int lane = threadIdx.x % lanes, worker = threadIdx.x / lanes, workers = stencil_block / lanes;
  int64_t output = ((int64_t(blockIdx.x) - rest * tiles) * lanes + lane) * V, plane = shape.out_plane();
  int64_t all = shape.batches * plane, of_range = (all + ranges - 1) / ranges;
  Wide sums[weights_at_once][V] = {}, of_bias[V] = {};
  if (output < shape.outputs())
    for (int64_t i = range * of_range + worker; i < min((range + 1) * of_range, all); i += workers) {
      int64_t batch = quotient(i, plane), position = i - batch * plane, sequence = group * shape.batches + batch;
      Vector<T, V> values = load<V>(dy + shape.y_index(sequence, output, position));
      Wide of_y[V];
#pragma unroll
      for (int v = 0; v < V; ++v) of_y[v] = Wide(values.lane[v]), of_bias[v] += of_y[v];
      conv.template add_dweight<V, weights_at_once>(of_y, sequence, output, PlanePosition(position, shape.out), first,
                                                    sums);
    }
#pragma unroll
  for (int t = 0; t <= weights_at_once; ++t) {
    // The first blocks have the bias too.
    bool is_bias = t == weights_at_once;
    if (is_bias ? first > 0 : first + t >= taps) continue;
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) of_threads[threadIdx.x][v] = is_bias ? of_bias[v] : sums[is_bias ? 0 : t][v];
    for (int half = workers / 2; half > 0; half /= 2) {
      __syncthreads();
      if (worker < half)
#pragma unroll
        for (int v = 0; v < V; ++v) of_threads[threadIdx.x][v] += of_threads[threadIdx.x + half * lanes][v];
    }
    if (worker > 0 || output >= shape.outputs()) continue;
#pragma unroll
    for (int v = 0; v < V; ++v)
      parts[((group * ranges + range) * (taps + 1) + (is_bias ? taps : first + t)) * shape.outputs() + output + v] =
          of_threads[threadIdx.x][v];
  }
}

// Where the sums of a tap belong.
template <class T>
struct WindowWeights {
  DepthwiseShape shape;
  T *dweight, *dbias;

  __device__ void operator()(int64_t group, int64_t tap, int64_t output, Accumulator<T> total) const {
    if (tap == shape.taps())
      dbias[group * shape.outputs() + output] = T(total);
    else
      dweight[shape.weight_index(group, output, tap)] = T(total);
  }
};

// Calls run(V): of channels that are last, as many as a vector load has, or fewer, or one.
template <int most, class Run>
Status by_channels(const DepthwiseShape& shape, const Run& run) {
  if (shape.channels_last && shape.multiplier == 1 && shape.channels % most == 0)
    return run(std::integral_constant<int, most>{});
  return run(std::integral_constant<int, 1>{});
}

// Forward, walks of one row, and along columns that are not aligned, save nothing where there are patches (of 16 bits
// and windows of 3, they do).
template <class T>
bool has_walks_forward(const DepthwiseShape& shape) {
  if (!has_walks<T>(shape) || shape.stride[0] * shape.stride[1] * shape.stride[2] != 1) return false;
  bool is_one_row = shape.window[1] == 1 && shape.batches == 1 && shape.out[1] == 1;
  return !has_patches(shape) ||
         (!is_one_row && (are_columns_aligned<4>(shape) || (sizeof(T) == 2 && kernel_window(shape) == 3)));
}

}  // namespace internal

template <class T>
Status stencil_window(const Executor& executor, const Depthwise<T>& conv, const T* bias, T* y) {
  using namespace internal;
  const DepthwiseShape& shape = conv.shape;
  if (has_walks_forward<T>(shape)) return run_walks(executor, conv, bias, y);
  if (has_patches(shape)) return run_patches(executor, conv, bias, y);
  if (has_strips<T>(shape)) return run_strips<false>(executor, conv, conv.x, bias, y);
  return by_channels<16 / sizeof(T)>(shape, [&](auto width) {
    constexpr int V = decltype(width)::value;
    int64_t total = shape.sequences() * shape.outputs() * shape.out_plane() / V,
            blocks = ceil_div(total, stencil_block);
    if (!is_grid(blocks)) return too_large();
    if (blocks > 0) stencil_windows<V><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(conv, bias, y, total);
    return launched();
  });
}

template <class T>
Status stencil_window_backward(Executor executor, const Depthwise<T>& conv, const T* dy, T* dx, T* dweight, T* dbias) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const DepthwiseShape& shape = conv.shape;
  int64_t slots = shape.taps() + 1, of_part = shape.groups * slots * shape.outputs();
  if (of_part == 0) return {};
  // The workspace has been sized for the parts that there are to be.
  int64_t ranges = int64_t(executor.workspace_bytes / sizeof(Wide)) / of_part;
  if (ranges == 0) return small_workspace;
  Wide* parts = reinterpret_cast<Wide*>(executor.workspace);
  Status status;
  if (has_walks<T>(shape)) {
    status = run_walks_backward(executor, conv, dy, dx, parts, ranges);
  } else {
    auto write_dx = [&](auto width) {
      constexpr int V = decltype(width)::value;
      int64_t total = shape.sequences() * shape.channels * shape.in_plane() / V;
      int64_t blocks = ceil_div(total, stencil_block);
      if (!is_grid(blocks)) return too_large();
      if (blocks > 0)
        stencil_windows_dx<V><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(conv, dy, dx, total);
      return launched();
    };
    status = has_strips_dx<T>(shape) ? run_strips<true>(executor, conv, dy, static_cast<const T*>(nullptr), dx)
                                     : by_channels<16 / sizeof(T)>(shape, write_dx);
    if (!status.ok()) return status;
    auto sum_weights = [&](auto width) {
      constexpr int V = decltype(width)::value;
      int lanes = shape.channels_last ? stencil_lanes<V>(shape.outputs()) : 1;
      int64_t tiles = ceil_div(shape.outputs(), lanes * V), blocks = shape.groups * ranges * tiles;
      int64_t chunks = ceil_div(shape.taps(), weights_at_once);
      if (!is_grid(blocks) || chunks > 65535) return too_large();
      stencil_windows_dweight<V><<<dim3(unsigned(blocks), unsigned(chunks)), stencil_block, 0, executor.stream>>>(
          conv, dy, parts, lanes, tiles, ranges);
      return launched();
    };
    status = has_strips<T>(shape) ? run_strips_dweight(executor, conv, dy, parts, ranges)
                                  : by_channels<std::min<int>(4, 16 / sizeof(T))>(shape, sum_weights);
  }
  if (!status.ok()) return status;
  return add_stencil_parts(executor, parts, shape.groups, ranges, slots, shape.outputs(),
                           WindowWeights<T>{shape, dweight, dbias});
}

}  // namespace baracuda
