// Products of small matrices in shared memory, by a block of eight warps. A warp has 16 rows of the result and some of
// its columns, in registers, as mma_cuda.h lays them out. Factors are float or double: float16 would overflow where a
// state is large, and bfloat16 comes here where its rows or columns are not multiples of 8.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "executor.h"
#include "store_shared_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int product_block = 256;

// The distance of rows in shared memory: neighboring ones begin in other banks.
template <class S, int width>
inline constexpr int pitch = width + 16 / int(sizeof(S));

// A warp's part of a product [side, width].
template <class S, int side, int width>
struct Part {
  using Wide = Accumulator<S>;
  static constexpr int down = side / 16, across = product_block / 32 / down, tiles = width / across / 8;
  static_assert(tiles > 0 && tiles * across * 8 == width);
  Wide value[tiles][4];

  static __device__ int lane() { return threadIdx.x % 32; }
  static __device__ int first_row() { return threadIdx.x / 32 % down * 16; }
  // Which of the warps that have the same rows.
  static __device__ int strip() { return threadIdx.x / 32 / down; }
  // Where value[.][e] and value[t][e] are.
  static __device__ int row(int e) { return first_row() + lane() / 4 + e / 2 * 8; }
  static __device__ int column(int t, int e) { return strip() * (width / across) + t * 8 + lane() % 4 * 2 + e % 2; }

  // Calls body(t, e) of each value.
  template <class Body>
  static __device__ void each(const Body& body) {
#pragma unroll
    for (int t = 0; t < tiles; ++t)
#pragma unroll
      for (int e = 0; e < 4; ++e) body(t, e);
  }
  __device__ void clear() {
    each([&](int t, int e) { value[t][e] = 0; });
  }
  // Writes change(row, column, value) to rows of shared memory.
  template <class To, class Change>
  __device__ void keep(To* to, int to_pitch, const Change& change) const {
    each([&](int t, int e) { to[row(e) * to_pitch + column(t, e)] = To(change(row(e), column(t, e), value[t][e])); });
  }

  // Where the columns end that a warp's rows of a lower triangle have, and where the rows begin that its columns have.
  static __device__ int lower_end() { return min(side, (first_row() + 16 + 31) / 32 * 32); }
  static __device__ int lower_begin() { return first_row() / 32 * 32; }

  // Adds a [side, depth] times b [depth, width], of the depths from begin to end, in steps of 32. Of a turned factor
  // the columns are stored as rows. Of a lower triangle tiles above the diagonal are left out.
  template <bool a_turned, bool b_turned, bool is_lower = false>
  __device__ void add_product(const S* a, int a_pitch, const S* b, int b_pitch, int begin, int end) {
    const int first = strip() * (width / across), last_row = first_row() + 15;
    if (is_lower && first > last_row) return;
    const int top = row(0), pair = column(0, 0);
#pragma unroll 2
    for (int k = begin; k < end; ++k) {
      Wide of_a[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        of_a[half] = a_turned ? a[k * a_pitch + top + half * 8] : a[(top + half * 8) * a_pitch + k];
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        if (is_lower && first + t * 8 > last_row) continue;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          int at = pair + t * 8 + c;
          Wide of_b = b_turned ? b[at * b_pitch + k] : b[k * b_pitch + at];
          value[t][c] += of_a[0] * of_b, value[t][2 + c] += of_a[1] * of_b;
        }
      }
    }
  }
};

// Brings [height, width] to shared memory, of which so many rows and columns are there; others are 0. Elements become
// change(row, column, element).
template <int height, int width, class T, class S, class Change>
__device__ void stage(S* to, const T* from, int64_t stride, int rows, int columns, const Change& change) {
  using Wide = Accumulator<T>;
  constexpr int V = 16 / sizeof(T), vectors = width / V;
  const bool is_aligned = columns % V == 0 && stride % V == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0;
  for (int i = threadIdx.x; i < height * vectors; i += product_block) {
    int row = i / vectors, column = (i - row * vectors) * V;
    Vector<T, V> values{};
    const T* at = from + row * stride + column;
    if (row < rows && column < columns) {
      if (is_aligned) {
        values = load<V>(at);
      } else {
#pragma unroll
        for (int k = 0; k < V; ++k)
          if (column + k < columns) values.lane[k] = at[k];
      }
    }
    Vector<S, V> staged;
    bool is_row = row < rows;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      bool is_there = is_row && column + k < columns;
      staged.lane[k] = S(is_there ? Wide(change(row, column + k, Wide(values.lane[k]))) : Wide(0));
    }
    store_shared<V>(to + row * pitch<S, width> + column, staged);
  }
}

template <int height, int width, class T, class S>
__device__ void stage(S* to, const T* from, int64_t stride, int rows, int columns) {
  stage<height, width>(to, from, stride, rows, columns, [](int, int, Accumulator<T> x) { return x; });
}

}  // namespace internal
}  // namespace baracuda
