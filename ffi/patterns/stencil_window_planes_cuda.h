// The stencil pattern with windows of 3, 5 or 7 along the last axis and as many, or one, along the axis before, the
// channels first. A thread has a patch of a plane: a vector
// of neighbors, in a few rows, whose sums are in registers with the weights. Rows of the source are read one after the
// other, as vectors with the few neighbors at both sides, and each is used for all rows of the patch that it belongs
// to. What patches share comes from the first-level cache: from memory an element comes once.
//
// Backward, with strides of 1, dx is the same sum, over dy and with the window turned over; and each element of dy that
// an element of x meets there is also a term of dweight. So a warp reads x and dy once, writes dx, and has sums for
// weights and bias of the patches of its range, which are all of one channel.
#pragma once

#include <algorithm>

#include "../kernels/depthwise.h"
#include "stencil_sums_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int patch_block = 128;

// Neighbors in a patch: a vector load, or as many as make use of a row that is read.
template <class T>
inline constexpr int patch_lanes = 16 / sizeof(T);

__device__ inline bool is_index(int index, int count) { return unsigned(index) < unsigned(count); }

// The elements of a row that V neighboring windows read, from `first` - K / 2 on, `first` being a multiple of S V;
// 0 outside.
template <int K, int S, int V, bool aligned, class T>
__device__ void load_line(const T* row, bool is_row, int first, int columns, Accumulator<T> (&line)[(V - 1) * S + K]) {
  constexpr int left = K / 2, length = (V - 1) * S + K, middle = aligned ? S * V : 0;
#pragma unroll
  for (int s = 0; s < middle / V; ++s) {
    int begin = first + s * V;
    Vector<T, V> values{};
    if (is_row && begin < columns) values = load<V>(row + begin);
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (int i = left + s * V + v; i < length) line[i] = Accumulator<T>(values.lane[v]);
  }
#pragma unroll
  for (int i = 0; i < length; ++i) {
    if (i >= left && i < left + middle) continue;
    int index = first - left + i;
    line[i] = is_row && is_index(index, columns) ? Accumulator<T>(row[index]) : Accumulator<T>(0);
  }
}

template <int V, bool aligned, class T>
__device__ void store_line(T* row, int first, int columns, const Vector<T, V>& values) {
  if constexpr (aligned) {
    if (first < columns) store<V>(row + first, values);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (first + v < columns) row[first + v] = values.lane[v];
  }
}

// The patches of planes, `vectors` next to each other and `strips` below each other.
struct Patches {
  int64_t vectors, strips;
};

// J is the size of windows along the axis before the last, and R the number of rows of a patch.
template <int J, int K, int S, int R, bool aligned, class T>
__global__ void __launch_bounds__(patch_block)
    stencil_patches(Depthwise<T> conv, const T* bias, T* y, Patches patches, int64_t total) {
  using Wide = Accumulator<T>;
  constexpr int V = patch_lanes<T>;
  const DepthwiseShape& shape = conv.shape;
  int64_t index = int64_t(blockIdx.x) * patch_block + threadIdx.x;
  if (index >= total) return;
  int64_t strip = quotient(index, patches.vectors), plane = quotient(strip, patches.strips);
  int w = int(index - strip * patches.vectors) * V, h = int(strip - plane * patches.strips) * R;
  int64_t row = quotient(plane, shape.out[0]), d = plane - row * shape.out[0];
  int64_t sequence = quotient(row, shape.outputs()), output = row - sequence * shape.outputs();
  int64_t weights = quotient(sequence, shape.batches) * shape.outputs() + output;
  const T* x = conv.x + shape.x_index(sequence, quotient(output, shape.multiplier), 0);
  int height = int(shape.in[1]), columns = int(shape.in[2]);
  Wide sums[R][V] = {};
  for (int64_t a = 0; a < shape.window[0]; ++a) {
    int64_t depth = shape.read(0, d, a);
    Wide factors[J][K];
#pragma unroll
    for (int k = 0; k < J * K; ++k)
      factors[k / K][k % K] = Wide(conv.weight[(weights * shape.window[0] + a) * (J * K) + k]);
#pragma unroll
    for (int i = 0; i < (R - 1) * S + J; ++i) {
      int from = h * (J == 1 ? int(shape.stride[1]) : S) - int(shape.before[1]) + i;
      bool is_row = shape.is_inside(0, depth) && is_index(from, height);
      Wide line[(V - 1) * S + K];
      load_line<K, S, V, aligned>(x + (depth * height + from) * columns, is_row, w * S, columns, line);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        int b = i - r * S;
        if (b < 0 || b >= J) continue;
#pragma unroll
        for (int c = 0; c < K; ++c)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[r][v] += factors[b][c] * line[v * S + c];
      }
    }
  }
  Wide more = Wide(bias[weights]);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (h + r >= shape.out[1]) break;
    Vector<T, V> values;
#pragma unroll
    for (int v = 0; v < V; ++v) values.lane[v] = T(sums[r][v] + more);
    store_line<V, aligned>(y + (plane * shape.out[1] + h + r) * shape.out[2], w, int(shape.out[2]), values);
  }
}

// Of planes without depth in their windows, a padding of half a window before, strides of 1 and one output for each
// channel. Patches cover what is larger of x and y. A warp has patches [range per_range, (range + 1) per_range) of a
// channel.
template <int J, int K, int R, bool aligned, class T>
__global__ void __launch_bounds__(patch_block)
    stencil_patches_backward(Depthwise<T> conv, const T* dy, T* dx, Accumulator<T>* parts, Patches patches,
                             int64_t depth, int64_t of_channel, int64_t per_range, int64_t ranges, int64_t total) {
  using Wide = Accumulator<T>;
  constexpr int V = patch_lanes<T>, above = J / 2, left = K / 2, taps = J * K;
  const DepthwiseShape& shape = conv.shape;
  int64_t warp = int64_t(blockIdx.x) * (patch_block / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (warp >= total) return;
  int64_t weights = quotient(warp, ranges), range = warp - weights * ranges;
  int64_t group = quotient(weights, shape.channels), channel = weights - group * shape.channels;
  int64_t end = min((range + 1) * per_range, of_channel);
  Wide factors[J][K], sums[taps + 1] = {};
#pragma unroll
  for (int k = 0; k < taps; ++k) factors[k / K][k % K] = Wide(conv.weight[weights * taps + k]);
  int x_height = int(shape.in[1]), x_columns = int(shape.in[2]);
  int y_height = int(shape.out[1]), y_columns = int(shape.out[2]);
  for (int64_t patch = range * per_range + lane; patch < end; patch += 32) {
    int64_t strip = quotient(patch, patches.vectors), plane = quotient(strip, patches.strips);
    int w = int(patch - strip * patches.vectors) * V, h = int(strip - plane * patches.strips) * R;
    int64_t batch = quotient(plane, depth), d = plane - batch * depth, sequence = group * shape.batches + batch;
    // The plane may be one of x or of y alone.
    bool is_x = d < shape.in[0], is_y = d < shape.out[0];
    int64_t x_plane = shape.x_index(sequence, channel, 0) + d * x_height * x_columns;
    int64_t y_plane = shape.y_index(sequence, channel, 0) + d * y_height * y_columns;
    Wide x[R][V], d_x[R][V] = {};
#pragma unroll
    for (int r = 0; r < R; ++r)
      load_line<1, 1, V, aligned>(conv.x + x_plane + int64_t(h + r) * x_columns, is_x && h + r < x_height, w, x_columns,
                                  x[r]);
#pragma unroll
    for (int i = 0; i < R + J - 1; ++i) {
      int from = h - above + i;
      if (!is_y || !is_index(from, y_height)) continue;
      Wide line[V - 1 + K];
      load_line<K, 1, V, aligned>(dy + y_plane + int64_t(from) * y_columns, true, w, y_columns, line);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        int b = r + J - 1 - i;
        if (b < 0 || b >= J) continue;
#pragma unroll
        for (int at = 0; at < V - 1 + K; ++at) {
          // What is outside of dy is no term: it would be NaN with an infinite factor.
          if (!is_index(w - left + at, y_columns)) continue;
#pragma unroll
          for (int v = 0; v < V; ++v) {
            int c = v + K - 1 - at;
            if (c < 0 || c >= K) continue;
            d_x[r][v] += factors[b][c] * line[at];
            sums[b * K + c] += x[r][v] * line[at];
          }
        }
        if (i != r + above) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) sums[taps] += line[left + v];
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (!is_x || h + r >= x_height) break;
      Vector<T, V> values;
#pragma unroll
      for (int v = 0; v < V; ++v) values.lane[v] = T(d_x[r][v]);
      store_line<V, aligned>(dx + x_plane + int64_t(h + r) * x_columns, w, x_columns, values);
    }
  }
#pragma unroll
  for (int t = 0; t <= taps; ++t) {
    Wide sum = sums[t];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (lane == 0) parts[((group * ranges + range) * (taps + 1) + t) * shape.channels + channel] = sum;
  }
}

// Whether there are patches of such windows, whose indices along an axis are 32 bits.
inline bool has_patches(const DepthwiseShape& shape) {
  constexpr int64_t most = int64_t(1) << 29;
  int64_t size = shape.window[2], step = shape.stride[2];
  for (int a = 1; a < 3; ++a)
    if (shape.in[a] >= most || shape.out[a] >= most || shape.before[a] >= most) return false;
  return !shape.channels_last && (size == 3 || size == 5 || size == 7) &&
         (shape.window[1] == size ? shape.stride[1] == step : shape.window[1] == 1) && shape.before[2] == size / 2 &&
         shape.dilation[1] == 1 && shape.dilation[2] == 1 && (step == 1 || step == 2);
}
// Windows of 49 doubles and as many sums would not be in registers.
template <class T>
constexpr bool fits_backward(int64_t size) {
  return sizeof(Accumulator<T>) == 4 || size < 7;
}
template <class T>
bool has_patches_backward(const DepthwiseShape& shape) {
  return has_patches(shape) && fits_backward<T>(shape.window[1]) && shape.stride[2] == 1 && shape.stride[0] == 1 &&
         shape.before[1] == shape.window[1] / 2 && shape.window[0] == 1 && shape.before[0] == 0 &&
         shape.multiplier == 1;
}

template <class T>
bool are_rows_aligned(const DepthwiseShape& shape) {
  return shape.in[2] % patch_lanes<T> == 0 && shape.out[2] % patch_lanes<T> == 0;
}

// Calls run(J, K, is_aligned) with constants.
template <class Run>
Status by_window(const DepthwiseShape& shape, bool aligned, const Run& run) {
  int64_t size = shape.window[2];
  auto of_sizes = [&](auto j, auto k) { return aligned ? run(j, k, std::true_type{}) : run(j, k, std::false_type{}); };
  auto of_size = [&](auto k) {
    return shape.window[1] == 1 ? of_sizes(std::integral_constant<int, 1>{}, k) : of_sizes(k, k);
  };
  if (size == 3) return of_size(std::integral_constant<int, 3>{});
  if (size == 5) return of_size(std::integral_constant<int, 5>{});
  return of_size(std::integral_constant<int, 7>{});
}

template <class T>
Status run_patches(const Executor& executor, const Depthwise<T>& conv, const T* bias, T* y) {
  const DepthwiseShape& shape = conv.shape;
  return by_window(shape, are_rows_aligned<T>(shape), [&](auto rows, auto size, auto is_aligned) {
    constexpr int J = decltype(rows)::value, K = decltype(size)::value;
    constexpr bool aligned = decltype(is_aligned)::value;
    auto run = [&](auto step) {
      constexpr int S = decltype(step)::value, R = J == 1 ? 1 : J == 7 ? 2 : 4;
      Patches patches{ceil_div(shape.out[2], patch_lanes<T>), ceil_div(shape.out[1], R)};
      int64_t total = shape.sequences() * shape.outputs() * shape.out[0] * patches.strips * patches.vectors;
      int64_t blocks = ceil_div(total, patch_block);
      if (!is_grid(blocks)) return too_large();
      if (blocks > 0)
        stencil_patches<J, K, S, R, aligned>
            <<<unsigned(blocks), patch_block, 0, executor.stream>>>(conv, bias, y, patches, total);
      return launched();
    };
    return shape.stride[2] == 1 ? run(std::integral_constant<int, 1>{}) : run(std::integral_constant<int, 2>{});
  });
}

// dx, and the sums of `ranges` parts for weights and bias.
template <class T>
Status run_patches_backward(const Executor& executor, const Depthwise<T>& conv, const T* dy, T* dx,
                            Accumulator<T>* parts, int64_t ranges) {
  const DepthwiseShape& shape = conv.shape;
  return by_window(shape, are_rows_aligned<T>(shape), [&](auto rows, auto size, auto is_aligned) {
    constexpr int J = decltype(rows)::value, K = decltype(size)::value, V = patch_lanes<T>;
    constexpr bool aligned = decltype(is_aligned)::value;
    if constexpr (!fits_backward<T>(J)) {
      return Status{"a window that has no patches backward"};
    } else {
      // As many rows as there are registers for.
      constexpr int R = J == 1 ? 1 : V == 8 || J == 7 ? 2 : 4;
      Patches patches{ceil_div(std::max(shape.in[2], shape.out[2]), V),
                      ceil_div(std::max(shape.in[1], shape.out[1]), R)};
      int64_t depth = std::max(shape.in[0], shape.out[0]);
      int64_t of_channel = shape.batches * depth * patches.strips * patches.vectors;
      int64_t total = shape.groups * shape.channels * ranges, blocks = ceil_div(total, patch_block / 32);
      if (!is_grid(blocks)) return too_large();
      if (blocks > 0)
        stencil_patches_backward<J, K, R, aligned><<<unsigned(blocks), patch_block, 0, executor.stream>>>(
            conv, dy, dx, parts, patches, depth, of_channel, ceil_div(of_channel, ranges), ranges, total);
      return launched();
    }
  });
}

}  // namespace internal
}  // namespace baracuda
