// The packed columns pattern on a CUDA grid, for x of 32 and 64 bits: a warp has a part of the rows of W and eight
// words of each, and four lanes take the rows of a word in turn. packed_columns_mma_cuda.h is for 16 bits.
#pragma once

#include <algorithm>

#include "packed_columns_join_cuda.h"
#include "packed_columns_mma_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

// Rows of x of a block.
template <class Sum>
inline constexpr int column_rows_of = sizeof(Sum) == 8 ? 2 : 4;

template <class Sum>
__global__ void __launch_bounds__(column_threads)
    packed_columns_kernel(const __grid_constant__ PackedColumns work, Sum* sums) {
  using namespace packed;
  constexpr int column_rows = column_rows_of<Sum>;
  extern __shared__ __align__(16) char memory[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane % 8, t = lane / 8;
  int split = int(blockIdx.y % uint32_t(work.splits)),
      first_row = int(blockIdx.y / uint32_t(work.splits)) * column_rows;
  int64_t word = min(int64_t(blockIdx.x) * column_words + g, work.words - 1);
  ColumnsPart part(work, split * column_warps + warp);
  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    const uint32_t* data = work.data + batch * work.depth * work.words + word;
    const Sum* x[column_rows];
#pragma unroll
    for (int m = 0; m < column_rows; ++m)
      x[m] = static_cast<const Sum*>(work.x) +
             (batch * work.count + min(int64_t(first_row + m), work.count - 1)) * work.depth;
    Sum total[column_rows][word_columns] = {};
    for (int chunk = part.begin; chunk < part.end;) {
      int group = chunk / part.of_group, end = min(part.end, (group + 1) * part.of_group);
      float factor[word_columns];
      load_factors(work, batch, group, word, factor);
      uint32_t zero = work.zero[(batch * work.groups + group) * work.words + word];
#pragma unroll 4
      for (int k = chunk * column_chunk + t; k < end * column_chunk; k += 4) {
        uint32_t packed = data[int64_t(k) * work.words];
        Sum of_x[column_rows];
#pragma unroll
        for (int m = 0; m < column_rows; ++m) of_x[m] = x[m][k];
#pragma unroll
        for (int j = 0; j < word_columns; ++j) {
          Sum weight = Sum(float(awq_field(packed, j) - awq_field(zero, j)) * factor[j]);
#pragma unroll
          for (int m = 0; m < column_rows; ++m) total[m][j] += weight * of_x[m];
        }
      }
      chunk = end;
    }
    Sum* partial = reinterpret_cast<Sum*>(memory);
#pragma unroll
    for (int m = 0; m < column_rows; ++m)
#pragma unroll
      for (int j = 0; j < word_columns; ++j) {
        Sum sum = total[m][j];
        sum += __shfl_xor_sync(~0u, sum, 8);
        sum += __shfl_xor_sync(~0u, sum, 16);
        if (t == 0) partial[(warp * column_rows + m) * block_columns + 8 * g + j] = sum;
      }
    __syncthreads();
    join_parts<column_rows, Sum>(work, partial, batch, first_row, split, sums);
    __syncthreads();  // before sums are written again
  }
}

// W as floats. A thread has a word of eight rows, all of one group, and a warp neighboring words.
inline constexpr int unpacked_rows = 8, unpack_block = 256;

template <class T>
__global__ void __launch_bounds__(unpack_block)
    unpack_columns_kernel(const __grid_constant__ PackedColumns work, T* y, int64_t tiles, int64_t total) {
  using namespace packed;
  constexpr int V = sizeof(T) == 2 ? 8 : 16 / sizeof(T);
  int64_t warp = int64_t(blockIdx.x) * (unpack_block / 32) + threadIdx.x / 32;
  if (warp >= total) return;
  int64_t row = warp / tiles * unpacked_rows, word = (warp - warp / tiles * tiles) * 32 + threadIdx.x % 32;
  if (word >= work.words) return;
  int64_t batch = row / work.depth, group = (row - batch * work.depth) / work.group_depth();
  uint32_t packed[unpacked_rows], zero = work.zero[(batch * work.groups + group) * work.words + word];
#pragma unroll
  for (int i = 0; i < unpacked_rows; ++i) packed[i] = __ldg(work.data + (row + i) * work.words + word);
  float factor[word_columns];
  load_factors(work, batch, group, word, factor);
#pragma unroll
  for (int i = 0; i < unpacked_rows; ++i)
#pragma unroll
    for (int first = 0; first < word_columns; first += V) {
      Vector<T, V> out;
#pragma unroll
      for (int j = 0; j < V; ++j)
        out.lane[j] = T(float(awq_field(packed[i], first + j) - awq_field(zero, first + j)) * factor[first + j]);
      store<V>(y + (row + i) * work.columns() + word * word_columns + first, out);
    }
}

}  // namespace internal

template <class T>
Status unpack_columns(const Executor& executor, const PackedColumns& work, T* y) {
  using namespace internal;
  int64_t tiles = ceil_div(work.words, 32), total = work.batches * work.depth / unpacked_rows * tiles;
  int64_t blocks = ceil_div(total, unpack_block / 32);
  if (blocks == 0) return {};
  if (blocks >= int64_t(1) << 31) return {"the grid would have more than 2^31 - 1 blocks"};
  unpack_columns_kernel<<<static_cast<unsigned>(blocks), unpack_block, 0, executor.stream>>>(work, y, tiles, total);
  return launched();
}

template <class Sum>
Status packed_columns(const Executor& executor, const PackedColumns& work) {
  using namespace internal;
  if (work.batches * work.words * work.count == 0) return {};
  constexpr int column_rows = column_rows_of<Sum>;
  constexpr int bytes = column_warps * column_rows * block_columns * int(sizeof(Sum));
  auto kernel = packed_columns_kernel<Sum>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  return launch_columns<Sum, Sum>(executor, work, kernel, column_rows, size_t(bytes));
}

}  // namespace baracuda
