// What the parts of the packed columns pattern end with: their sums, added by halves. A block has 16 parts of the rows
// of W and the columns of eight words. Where the rows are cut into more, each block's sums go to memory, and another
// kernel adds these.
#pragma once

#include "packed_columns.h"

namespace baracuda {
namespace internal {

inline constexpr int column_warps = 16, column_threads = 32 * column_warps, column_words = 8,
                     block_columns = column_words * packed::word_columns, column_chunk = 32;

// Chunks of 32 rows, those of a part.
struct ColumnsPart {
  int begin, end;
  int of_group;  // chunks of a group
  __device__ ColumnsPart(const PackedColumns& work, int part) {
    uint32_t chunks = uint32_t(work.depth) / column_chunk, parts = column_warps * uint32_t(work.splits);
    begin = int(part * chunks / parts), end = int((part + 1) * chunks / parts);
    of_group = work.groups ? int(chunks / uint32_t(work.groups)) : 1;
  }
};

inline constexpr int most_splits = 8;
inline constexpr int64_t deepest = int64_t(1) << 28;  // so that the numbers above are 32 bits

// Eight neighboring factors, of a word's columns.
__device__ inline void load_factors(const PackedColumns& work, int64_t batch, int64_t group, int64_t word,
                                    float (&factor)[packed::word_columns]) {
  int64_t at = ((batch * work.groups + group) * work.words + word) * packed::word_columns;
  if (work.scale_dtype == RowDtype::f32) {
    Vector<float, 4> low = load<4>(static_cast<const float*>(work.scale) + at);
    Vector<float, 4> high = load<4>(static_cast<const float*>(work.scale) + at + 4);
#pragma unroll
    for (int j = 0; j < 4; ++j) factor[j] = low.lane[j], factor[4 + j] = high.lane[j];
  } else if (work.scale_dtype == RowDtype::bf16) {
    Vector<BFloat16, 8> all = load<8>(static_cast<const BFloat16*>(work.scale) + at);
#pragma unroll
    for (int j = 0; j < 8; ++j) factor[j] = float(all.lane[j]);
  } else {
    Vector<Half, 8> all = load<8>(static_cast<const Half*>(work.scale) + at);
#pragma unroll
    for (int j = 0; j < 8; ++j) factor[j] = float(all.lane[j]);
  }
}

// One element of y by a warp, weight by weight, as the definition has it.
template <class T>
__device__ float packed_columns_product(const PackedColumns& work, int64_t batch, int64_t m, int64_t column) {
  const T* x = static_cast<const T*>(work.x) + (batch * work.count + m) * work.depth;
  float sum = 0;
#pragma unroll 1
  for (int64_t k = threadIdx.x % 32; k < work.depth; k += 32) sum += work.weight(batch, k, column) * float(x[k]);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

// Writes an element of each lane of a warp. In half precision sums of x without factors may leave the range that the
// result is in: what is not finite is computed again.
template <class T, class Sum>
__device__ void write_column(const PackedColumns& work, int64_t batch, int m, int64_t column, bool there, Sum sum) {
  if constexpr (is_half<T>) {
    uint32_t again = __ballot_sync(~0u, there && !(fabsf(sum) <= 3.402823466e38f));
    for (; again != 0; again &= again - 1) {
      int which = __ffs(int(again)) - 1;
      float product = packed_columns_product<T>(work, __shfl_sync(~0u, batch, which), __shfl_sync(~0u, m, which),
                                                __shfl_sync(~0u, column, which));
      if (int(threadIdx.x % 32) == which) sum = product;
    }
  }
  if (there) static_cast<T*>(work.y)[(batch * work.count + m) * work.columns() + column] = T(sum);
}

// The first `used` sums, a power of two, by halves to the first one.
template <int most, class Sum>
__device__ void add_halves(Sum (&sum)[most], int used) {
  if constexpr (most > 1) {
    Sum half[most / 2];
#pragma unroll
    for (int t = 0; t < most / 2; ++t) half[t] = most <= used ? sum[t] + sum[t + most / 2] : sum[t];
    add_halves(half, used);
    sum[0] = half[0];
  }
}

// Adds what the parts of a block have in shared memory, [parts, rows of x, columns], of `rows` rows of x.
template <int rows, class T, class Sum>
__device__ void join_parts(const PackedColumns& work, const Sum* partial, int64_t batch, int first_row, int split,
                           Sum* sums) {
  constexpr int elements = rows * block_columns;
  static_assert(elements % 32 == 0);
  for (int k = threadIdx.x; k < elements; k += column_threads) {
    int m = first_row + k / block_columns;
    int64_t column = int64_t(blockIdx.x) * block_columns + k % block_columns;
    bool there = m < work.count && column < work.columns();
    Sum sum[column_warps];
#pragma unroll
    for (int t = 0; t < column_warps; ++t) sum[t] = partial[t * elements + k];
    add_halves(sum, column_warps);
    if (work.splits == 1)
      write_column<T>(work, batch, m, column, there, sum[0]);
    else if (there)
      sums[((split * work.batches + batch) * work.count + m) * work.columns() + column] = sum[0];
  }
}

// A thread an element of y; `splits` is a power of two.
template <class T, class Sum>
__global__ void __launch_bounds__(256) join_splits(const __grid_constant__ PackedColumns work, const Sum* sums) {
  int64_t of_batch = work.count * work.columns(), all = work.batches * of_batch;
  for (int64_t first = int64_t(blockIdx.x) * 256; first < all; first += int64_t(gridDim.x) * 256) {
    int64_t k = first + threadIdx.x;
    bool there = k < all;
    Sum sum[most_splits];
#pragma unroll
    for (int s = 0; s < most_splits; ++s) sum[s] = there && s < work.splits ? sums[s * all + k] : Sum(0);
    add_halves(sum, int(work.splits));
    int64_t at = there ? k : 0, batch = at / of_batch, of_row = at - batch * of_batch, m = of_row / work.columns();
    write_column<T>(work, batch, int(m), of_row - m * work.columns(), there, sum[0]);
  }
}

// Launches kernel(work, sums), which computes `rows` rows of x a block, and what adds the sums of blocks.
template <class T, class Sum, class Kernel>
Status launch_columns(Executor executor, const PackedColumns& work, Kernel kernel, int rows, size_t bytes) {
  constexpr int64_t most_blocks_yz = 65535;
  int64_t tiles = ceil_div(work.count, rows) * work.splits, blocks = ceil_div(work.words, column_words);
  if (tiles > most_blocks_yz || blocks >= int64_t(1) << 31 || work.depth >= deepest || work.splits > most_splits)
    return {"there are too many rows or columns, or too many splits"};
  Sum* sums = nullptr;
  if (work.splits > 1) {
    sums = executor.scratch<Sum>(work.splits * work.batches * work.count * work.columns());
    if (sums == nullptr) return small_workspace;
  }
  dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles),
            static_cast<unsigned>(std::min(work.batches, most_blocks_yz)));
  kernel<<<grid, column_threads, bytes, executor.stream>>>(work, sums);
  if (work.splits == 1) return launched();
  if (Status status = launched(); !status.ok()) return status;
  int64_t elements = work.batches * work.count * work.columns();
  join_splits<T, Sum>
      <<<static_cast<unsigned>(std::min<int64_t>(ceil_div(elements, 256), 1 << 20)), 256, 0, executor.stream>>>(work,
                                                                                                                sums);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
