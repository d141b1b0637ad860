// The blocks pattern on a CUDA grid: V neighbouring columns of a few rows to a thread.
#pragma once

#include "blocks.h"

namespace baracuda {
namespace internal {

inline constexpr int blocks_block = 256, blocks_rows = 4;

// A block is `lanes` threads along the columns by blocks_block / lanes rows; a thread's rows are that many apart.
// Columns keep their parameters over the rows.
template <int V, int K, class Functor>
__global__ void __launch_bounds__(blocks_block)
    block_cells(Functor functor, BlockIndex index, int64_t rows, int64_t columns, int lanes) {
  int step = blocks_block / lanes;
  int64_t first = int64_t(blockIdx.x) * step * blocks_rows + threadIdx.x / lanes;
  for (int64_t tile = blockIdx.y; tile * lanes * V < columns; tile += gridDim.y) {
    int64_t column = (tile * lanes + threadIdx.x % lanes) * V;
    if (column >= columns) return;
    int64_t last = -1;
    decltype(functor.template block<K>(0)) block;
#pragma unroll
    for (int i = 0; i < blocks_rows; ++i) {
      int64_t row = first + i * step;
      if (row >= rows) break;
      int64_t parameters = index(row) + (K > 1 || index.by_column ? column : 0);
      if (parameters != last) block = functor.template block<K>(parameters);
      last = parameters;
      functor.template cells<V>(row * columns + column, block);
    }
  }
}

template <int V, class Functor>
Status run_blocks_by(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  int lanes = 1;
  while (lanes < blocks_block && lanes * V < shape.columns) lanes *= 2;
  int64_t tiles = ceil_div(shape.columns, int64_t(lanes) * V);
  dim3 blocks(unsigned(ceil_div(shape.rows, int64_t(blocks_block / lanes) * blocks_rows)),
              unsigned(std::min<int64_t>(tiles, 65535)));
  if (V > 1 && shape.by_column)
    block_cells<V, V>
        <<<blocks, blocks_block, 0, executor.stream>>>(functor, BlockIndex(shape), shape.rows, shape.columns, lanes);
  else
    block_cells<V, 1>
        <<<blocks, blocks_block, 0, executor.stream>>>(functor, BlockIndex(shape), shape.rows, shape.columns, lanes);
  return launched();
}

}  // namespace internal

template <class Functor>
Status run_blocks(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  constexpr int V = 16 / sizeof(typename Functor::Element);
  if (shape.cells() == 0) return {};
  if (shape.columns % V == 0) return internal::run_blocks_by<V>(executor, functor, shape);
  return internal::run_blocks_by<Functor::least_width>(executor, functor, shape);
}

}  // namespace baracuda
