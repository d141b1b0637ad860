// The stencil pattern with windows that span up to 7 elements along the last two axes, the channels first, forward:
// those that walks (stencil_window_walks_cuda.h) do not have, as of strides of 2. There are kernels for windows of 3, 5
// or 7 along the last axis and as many, or one, along the axis before, of which others are a part. A thread has
// a patch of a plane: a vector of neighbors, in a few rows, whose sums are in registers with the weights. Rows of the
// source are read one after the other, as vectors with the few neighbors at both sides, and each is used for all rows
// of the patch that it belongs to. What patches share comes from the first-level cache: from memory an element comes
// once.
#pragma once

#include <algorithm>

#include "../kernels/depthwise.h"
#include "stencil_neighbors_cuda.h"
#include "stencil_window_taps_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int patch_block = 128;

// Neighbors in a patch: a vector load, or as many as make use of a row that is read.
template <class T>
inline constexpr int patch_lanes = 16 / sizeof(T);

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

// The patches of planes, `vectors` next to each other and `strips` below each other, and where the weights of a window
// are in that of the kernel.
struct Patches {
  int64_t vectors, strips;
  int above;  // rows of the kernel's window before the row at which it is
  WindowTaps taps;
};

// J is the size of windows along the axis before the last, and R the number of rows of a patch.
template <int J, int K, int S, int R, bool aligned, bool is_whole, class T>
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
    const T* weight = conv.weight + (is_whole ? (weights * shape.window[0] + a) * (J * K)
                                              : weights * shape.taps() + a * shape.window[1] * shape.window[2]);
#pragma unroll
    for (int k = 0; k < J * K; ++k) {
      int number = is_whole ? k : patches.taps.number(0, k / K, k % K);
      factors[k / K][k % K] = number < 0 ? Wide(0) : Wide(weight[number]);
    }
#pragma unroll
    for (int i = 0; i < (R - 1) * S + J; ++i) {
      int from = h * (J == 1 ? int(shape.stride[1]) : S) - patches.above + i;
      bool is_row = shape.is_inside(0, depth) && is_index(from, height);
      Wide line[(V - 1) * S + K];
      load_line<K, S, V, aligned>(x + (depth * height + from) * columns, is_row, w * S, columns, line);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        int b = i - r * S;
        if (b < 0 || b >= J) continue;
#pragma unroll
        for (int c = 0; c < K; ++c) {
          if (!is_whole && patches.taps.number(0, b, c) < 0) continue;
#pragma unroll
          for (int v = 0; v < V; ++v) sums[r][v] += factors[b][c] * line[v * S + c];
        }
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

// Whether there are patches of such windows, whose indices along an axis are 32 bits:
// with strides of 1 of the kernels' own ones.
inline bool has_patches(const DepthwiseShape& shape) {
  constexpr int64_t most = int64_t(1) << 29;
  int64_t rows = span_of(shape, 1), size = std::max(rows, span_of(shape, 2)), step = shape.stride[2];
  for (int a = 1; a < 3; ++a)
    if (shape.in[a] >= most || shape.out[a] >= most || shape.before[a] >= most) return false;
  return !shape.channels_last && size > 1 && size <= 7 && (rows == 1 || shape.stride[1] == step) &&
         (step == 2 || (step == 1 && has_own_window(shape))) && window_begin(shape, 2, kernel_window(shape)) == 0;
}

template <class T>
bool are_rows_aligned(const DepthwiseShape& shape) {
  return shape.in[2] % patch_lanes<T> == 0 && shape.out[2] % patch_lanes<T> == 0;
}

// Calls run(J, K, is_aligned) with constants.
template <class Run>
Status by_window(const DepthwiseShape& shape, bool aligned, const Run& run) {
  int64_t size = kernel_window(shape);
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
      // With strides of 1, rows that are aligned have walks.
      constexpr bool in_vectors = aligned && (S == 2 || J == 1);
      Patches patches{ceil_div(shape.out[2], patch_lanes<T>), ceil_div(shape.out[1], R),
                      int(shape.before[1] + first_tap(shape, 1, J)), WindowTaps(shape, {shape.window[0], J, K}, 1)};
      int64_t total = shape.sequences() * shape.outputs() * shape.out[0] * patches.strips * patches.vectors;
      int64_t blocks = ceil_div(total, patch_block);
      if (!is_grid(blocks)) return too_large();
      auto launch = [&](auto whole) {
        if (blocks > 0)
          stencil_patches<J, K, S, R, in_vectors, whole>
              <<<unsigned(blocks), patch_block, 0, executor.stream>>>(conv, bias, y, patches, total);
        return launched();
      };
      if constexpr (S == 2)
        if (!patches.taps.is_whole) return launch(std::false_type{});
      return launch(std::true_type{});
    };
    return shape.stride[2] == 1 ? run(std::integral_constant<int, 1>{}) : run(std::integral_constant<int, 2>{});
  });
}

}  // namespace internal
}  // namespace baracuda
