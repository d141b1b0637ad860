// The columns of a row that a thread of walks (stencil_window_walks_cuda.h) reads and writes.
#pragma once

#include "stencil_neighbors_cuda.h"
#include "stencil_window_taps_cuda.h"

namespace baracuda {
namespace internal {

// The same of elements that have 2^shift - 1 zeros between them.
__device__ inline bool is_index(int index, int count, int shift) {
  return is_index(index >> shift, count) && (index & ((1 << shift) - 1)) == 0;
}

// Columns that are neighbors in memory, R of them aligned.
template <int R, class T>
struct AlignedColumns {
  static constexpr int V = 1, most_lanes = 1;
  static constexpr bool strided = false;
  using Wide = Accumulator<T>;

  // The elements of a row that windows of K at the columns from `first` on read.
  template <int K>
  struct Line {
    static constexpr int side = K / 2, of_side = K == 7 ? 4 : K == 5 ? 2 : 1;
    Neighbors<R, T> own;
    Neighbors<of_side, T> left, right;

    __device__ void read(const T* at, int64_t, int first, int columns, int) {
      own.read(at);
      if (side > 0 && first > 0) left.read(at - of_side);
      if (side > 0 && first + R < columns) right.read(at + R);
    }
    __device__ Wide operator()(int i, int) const {
      return i < side ? left[of_side - side + i] : i < side + R ? own[i - side] : right[i - side - R];
    }
    // Whether the row has element i.
    static __device__ bool has(int i, int first, int columns, int) {
      return i < side ? first > 0 : i < side + R || first + R < columns;
    }
  };
  static __device__ void write(T* at, int64_t, int, int, const Wide (&values)[R][1]) {
    Vector<T, R> out;
#pragma unroll
    for (int r = 0; r < R; ++r) out.lane[r] = T(values[r][0]);
    store<R>(at, out);
  }
};

// Columns that are so far from each other, or that are not aligned, each of V neighboring channels. Of strided ones, y
// has 2^shift - 1 zeros between two.
template <int R, int channels, bool is_strided, class T>
struct SpreadColumns {
  static constexpr int V = channels, most_lanes = 32;
  static constexpr bool strided = is_strided;
  using Wide = Accumulator<T>;

  template <int K>
  struct Line {
    static constexpr int side = K / 2, length = R + K - 1;
    Neighbors<V, T> element[length];

    __device__ void read(const T* at, int64_t apart, int first, int columns, int shift) {
#pragma unroll
      for (int i = 0; i < length; ++i)
        if (has(i, first, columns, shift))
          element[i].read(at + (strided ? ((first - side + i) >> shift) - (first >> shift) : i - side) * apart);
    }
    __device__ Wide operator()(int i, int v) const { return element[i][v]; }
    static __device__ bool has(int i, int first, int columns, int shift) {
      return strided ? is_index(first - side + i, columns, shift) : is_index(first - side + i, columns);
    }
  };
  static __device__ void write(T* at, int64_t apart, int first, int columns, const Wide (&values)[R][V]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (!is_index(first + r, columns)) continue;
      Vector<T, V> out;
#pragma unroll
      for (int v = 0; v < V; ++v) out.lane[v] = T(values[r][v]);
      store<V>(at + r * apart, out);
    }
  }
};

template <int R>
bool are_columns_aligned(const DepthwiseShape& shape) {
  return !shape.channels_last && shape.in[2] % R == 0 && shape.out[2] == shape.in[2] && shape.stride[2] == 1 &&
         window_begin(shape, 2, kernel_window(shape)) == 0;
}

}  // namespace internal
}  // namespace baracuda
