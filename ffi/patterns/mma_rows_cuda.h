// Rows of matrices of half precisions, in tiles in shared memory and in a warp's registers, and their products by
// tensor cores. A tile's row is in chunks of 16 bytes, of which those of eight neighboring rows are in different banks.
// A fragment is loaded before the products of the one before it, so that tensor cores do not wait for shared memory.
#pragma once

#include "copy_async_cuda.h"
#include "mma_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int mma_rows = 16;  // of a fragment

// Rows of D columns in shared memory.
template <class T_, int D, int rows_>
struct MmaTile {
  using T = T_;
  static constexpr int rows = rows_, chunk = 8, chunks = D / chunk, bytes = rows * D * int(sizeof(T));
  static constexpr uint32_t pitch = D * sizeof(T);
  T* at;

  static __device__ int offset(int row, int number) { return row * D + ((number ^ (row & 7)) * chunk); }
  __device__ T* address(int row, int number) const { return at + offset(row, number); }

  // Where a lane finds its row of the chunks 0 and 1, from a row that is a multiple of 8 on, in bytes from the tile's
  // begin. Those of the chunks 2 k and 2 k + 1 are at this ^ step(k), those of n rows further on at n * pitch more: a
  // tile begins at a multiple of 256 bytes.
  static __device__ uint32_t step(int k) { return uint32_t(k) * 2 * chunk * sizeof(T); }
  static __device__ uint32_t in_bytes(int row, int number) { return uint32_t(offset(row, number)) * sizeof(T); }
  // Of A: 16 rows, and two chunks of columns. The same are two Bs, whose columns are 8 columns each.
  static __device__ uint32_t as_left() { return in_bytes(threadIdx.x % 16, threadIdx.x % 32 / 16); }
  // Of two Bs, whose columns are 8 rows each.
  static __device__ uint32_t as_right() {
    int lane = threadIdx.x % 32;
    return in_bytes(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  // The fragments from a row on, at the step k of 16 columns.
  static __device__ void left(uint32_t (&a)[4], uint32_t at, int row, int k) {
    load_matrices(a, (at ^ step(k)) + row * pitch);
  }
  // Of A, whose columns are rows of the tile: from as_right().
  static __device__ void left_of_rows(uint32_t (&a)[4], uint32_t at, int row, int k) {
    load_transposed_matrices(a, (at ^ step(k)) + row * pitch);
  }
  static __device__ void right(uint32_t (&b)[2][2], uint32_t at, int row, int k) {
    uint32_t all[4];
    load_matrices(all, (at ^ step(k)) + row * pitch);
    b[0][0] = all[0], b[0][1] = all[1], b[1][0] = all[2], b[1][1] = all[3];
  }
  static __device__ void right_of_rows(uint32_t (&b)[2][2], uint32_t at, int row, int k) {
    uint32_t all[4];
    load_transposed_matrices(all, (at ^ step(k)) + row * pitch);
    b[0][0] = all[0], b[0][1] = all[1], b[1][0] = all[2], b[1][1] = all[3];
  }
};

// Rows in memory that a block's threads copy to tiles, one tile after the other.
template <class Tile, int threads>
struct MmaSource {
  using T = typename Tile::T;
  static constexpr int together = threads / Tile::chunks;          // rows
  static_assert(together % 8 == 0 && Tile::rows % together == 0);  // rows of a thread have the same order of chunks
  const T* next;
  int64_t stride;
  uint32_t to;
  int row, size;

  // Columns from `columns` on become 0.
  __device__ MmaSource(const T* from, int64_t stride, int columns) : stride(stride) {
    int number = int(threadIdx.x) % Tile::chunks;
    row = int(threadIdx.x) / Tile::chunks;
    to = Tile::in_bytes(row, number);
    bool is_one = number * Tile::chunk < columns;
    size = is_one ? 16 : 0;
    next = from + row * stride + (is_one ? number * Tile::chunk : 0);
  }
  // Begins to copy rows; those from `count` on become 0.
  __device__ void read(uint32_t tile, int count) {
    if (count >= Tile::rows) {
#pragma unroll
      for (int i = 0; i < Tile::rows; i += together) {
        copy_async(tile + to + i * Tile::pitch, next, size);
        next += together * stride;
      }
    } else {
      const T* first = next - row * stride;
#pragma unroll 1
      for (int i = 0; i < Tile::rows; i += together) {
        bool is_one = i + row < count;
        copy_async(tile + to + i * Tile::pitch, is_one ? next : first, is_one ? size : 0);
        next += together * stride;
      }
    }
  }
};

// A lane's elements of the parts of a warp's rows: those of a half are in one row, element e of part j in a column.
__device__ inline int mma_row(int first, int half) { return first + int(threadIdx.x) % 32 / 4 + half * 8; }
__device__ inline int mma_column(int j, int e) { return 8 * j + int(threadIdx.x) % 4 * 2 + e % 2; }

// Fragments of m times 16 rows, of so many steps of 16 columns.
template <int m, int steps>
struct MmaLeft {
  uint32_t part[steps][m][4];

  template <class Tile>
  __device__ void load(uint32_t at) {
#pragma unroll
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int i = 0; i < m; ++i) Tile::left(part[k][i], at, mma_rows * i, k);
  }
};

// m times 16 rows of a warp, of n columns, in parts of 8.
template <int m, int n>
struct MmaRows {
  float part[m][n / 8][4];

  template <class Each>
  __device__ void each(int i, int half, const Each& change) {
#pragma unroll
    for (int j = 0; j < n / 8; ++j)
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) change(part[i][j][e], mma_column(j, e));
  }
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) each(i, half, [](float& x, int) { x = 0; });
  }
  template <class T>
  __device__ void add(int i, int j, const uint32_t (&left)[4], const uint32_t (&right)[2][2]) {
    multiply_add<T>(part[i][2 * j], left, right[0]);
    multiply_add<T>(part[i][2 * j + 1], left, right[1]);
  }
  // Rows of a tile A times n rows of a tile B, both of which have so many steps of 16 columns.
  template <int steps, class A, class B>
  __device__ void add_product(uint32_t a, uint32_t b) {
    constexpr int parts = n / 16;
    uint32_t left[2][m][4], right[2][2][2];
#pragma unroll
    for (int i = 0; i < m; ++i) A::left(left[0][i], a, mma_rows * i, 0);
    B::right(right[0], b, 0, 0);
#pragma unroll
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int j = 0; j < parts; ++j) {
        int now = k * parts + j, next = now + 1;
        if (next < steps * parts) {
          if (next % parts == 0)
#pragma unroll
            for (int i = 0; i < m; ++i) A::left(left[(k + 1) % 2][i], a, mma_rows * i, k + 1);
          B::right(right[next % 2], b, next % parts * 16, next / parts);
        }
#pragma unroll
        for (int i = 0; i < m; ++i) add<typename B::T>(i, j, left[k % 2][i], right[now % 2]);
      }
  }
  // Rows whose fragments are there, times n rows of a tile B.
  template <class B, int steps>
  __device__ void add_product(const MmaLeft<m, steps>& a, uint32_t b) {
    constexpr int parts = n / 16;
    uint32_t right[2][2][2];
    B::right(right[0], b, 0, 0);
#pragma unroll
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int j = 0; j < parts; ++j) {
        int now = k * parts + j, next = now + 1;
        if (next < steps * parts) B::right(right[next % 2], b, next % parts * 16, next / parts);
#pragma unroll
        for (int i = 0; i < m; ++i) add<typename B::T>(i, j, a.part[k][i], right[now % 2]);
      }
  }
  // Weights, rounded, times as many rows of a tile B.
  template <class B, int count>
  __device__ void add_product_of_rows(const MmaRows<m, count>& weights, uint32_t b) {
    constexpr int parts = n / 16, steps = count / 16;
    uint32_t left[m][4], right[2][2][2];
    B::right_of_rows(right[0], b, 0, 0);
#pragma unroll
    for (int k = 0; k < steps; ++k) {
#pragma unroll
      for (int i = 0; i < m; ++i) weights.template round<typename B::T>(left[i], i, k);
#pragma unroll
      for (int j = 0; j < parts; ++j) {
        int now = k * parts + j, next = now + 1;
        if (next < steps * parts) B::right_of_rows(right[next % 2], b, next / parts * 16, next % parts);
#pragma unroll
        for (int i = 0; i < m; ++i) add<typename B::T>(i, j, left[i], right[now % 2]);
      }
    }
  }
  // Rounded weights, times as many rows of a tile B from a step of 16 columns on.
  template <class B, int steps>
  __device__ void add_product_of_rows(const MmaLeft<m, steps>& weights, uint32_t b, int from) {
    constexpr int parts = n / 16;
    uint32_t right[2][2][2];
    B::right_of_rows(right[0], b, 0, from);
#pragma unroll
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int j = 0; j < parts; ++j) {
        int now = k * parts + j, next = now + 1;
        if (next < steps * parts) B::right_of_rows(right[next % 2], b, next / parts * 16, from + next % parts);
#pragma unroll
        for (int i = 0; i < m; ++i) add<typename B::T>(i, j, weights.part[k][i], right[now % 2]);
      }
  }
  // The fragment of 16 columns, rounded.
  template <class T>
  __device__ void round(uint32_t (&left)[4], int i, int k) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float* pair = part[i][2 * k + j / 2] + j % 2 * 2;
      left[j] = rounded_pair<T>(pair[0], pair[1]);
    }
  }
  // Rounds the rows and writes them, as columns from a chunk on, by way of a tile, of which the warp alone uses these
  // rows and columns.
  template <class Tile>
  __device__ void write(const Tile& by, int first, typename Tile::T* to, int64_t stride, int count, int columns,
                        int chunk = 0) const {
    using T = typename Tile::T;
    int lane = threadIdx.x % 32, r = lane / 4, c = lane % 4;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < n / 8; ++j) {
        const float* of = part[i][j];
        *reinterpret_cast<uint32_t*>(by.address(first + 16 * i + r, chunk + j) + 2 * c) = rounded_pair<T>(of[0], of[1]);
        *reinterpret_cast<uint32_t*>(by.address(first + 16 * i + r + 8, chunk + j) + 2 * c) =
            rounded_pair<T>(of[2], of[3]);
      }
    __syncwarp();
    constexpr int chunks = n / Tile::chunk;
    for (int all = lane; all < m * mma_rows * chunks; all += 32) {
      int row = first + all / chunks, number = chunk + all % chunks;
      if (row < count && number * Tile::chunk < columns)
        *reinterpret_cast<uint4*>(to + row * stride + number * Tile::chunk) =
            *reinterpret_cast<const uint4*>(by.address(row, number));
    }
  }
};

}  // namespace internal
}  // namespace baracuda
