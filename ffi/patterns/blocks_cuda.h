// The blocks pattern on a CUDA grid: V neighbouring columns of a few rows to a thread, all read before any is written.
#pragma once

#include "blocks.h"

namespace baracuda {
namespace internal {

inline constexpr int blocks_block = 128, blocks_rows = 4;

// A block is threads along the columns by threads along the rows; a thread's rows are as many apart as the block has.
template <int V, int K, class Functor, class Index>
__global__ void __launch_bounds__(blocks_block)
    block_cells(Functor functor, BlockIndex<Index> index, Index rows, int64_t columns, bool by_column) {
  Index row = Index(blockIdx.x) * (blockDim.y * blocks_rows) + threadIdx.y, last = rows - 1;
  int64_t step = blockDim.y * columns;
  for (int64_t tile = blockIdx.y; tile * blockDim.x * V < columns; tile += gridDim.y) {
    int64_t column = (tile * blockDim.x + threadIdx.x) * V, cell = row * columns + column;
    if (column >= columns) return;
    // What is beyond the last row reads the last one's parameters: a branch would part these loads from the others.
    auto parameters = [&](int i) { return index(min(row + i * int(blockDim.y), last)) + (by_column ? column : 0); };
    auto in_range = [&](int i) { return row + i * int(blockDim.y) <= last; };
    decltype(functor.template block<K>(0)) blocks[K == 1 ? blocks_rows : 1];
    decltype(functor.template read<V>(0)) values[blocks_rows];
    if constexpr (K == 1)
#pragma unroll
      for (int i = 0; i < blocks_rows; ++i) blocks[i] = functor.template block<1>(parameters(i));
    else
      blocks[0] = functor.template block<K>(parameters(0));
#pragma unroll
    for (int i = 0; i < blocks_rows; ++i)
      if (in_range(i)) values[i] = functor.template read<V>(cell + i * step);
#pragma unroll
    for (int i = 0; i < blocks_rows; ++i) {
      if (K > 1 && i > 0 && parameters(i) != parameters(i - 1))  // seldom
        blocks[0] = functor.template block<K>(parameters(i));
      if (in_range(i)) functor.write(cell + i * step, values[i], blocks[K == 1 ? i : 0]);
    }
  }
}

template <int V, int K, class Index, class Functor>
Status run_blocks_by(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  unsigned lanes = 1;
  while (lanes < blocks_block && lanes * V < shape.columns) lanes *= 2;
  dim3 block(lanes, blocks_block / lanes);
  int64_t tiles = ceil_div(shape.columns, int64_t(lanes) * V);
  dim3 grid(unsigned(ceil_div(shape.rows, int64_t(block.y) * blocks_rows)), unsigned(std::min<int64_t>(tiles, 65535)));
  block_cells<V, K><<<grid, block, 0, executor.stream>>>(functor, BlockIndex<Index>(shape), Index(shape.rows),
                                                         shape.columns, shape.by_column);
  return launched();
}

}  // namespace internal

template <class Functor>
Status run_blocks(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  constexpr int V = 16 / sizeof(typename Functor::Element), W = Functor::least_width;
  constexpr int64_t reach = (int64_t(1) << 31) - internal::blocks_block * internal::blocks_rows;
  if (shape.cells() == 0) return {};
  if (shape.rows >= reach) return internal::run_blocks_by<W, 1, int64_t>(executor, functor, shape);
  if (shape.columns % V) return internal::run_blocks_by<W, 1, int32_t>(executor, functor, shape);
  if (shape.by_column) return internal::run_blocks_by<V, V, int32_t>(executor, functor, shape);
  return internal::run_blocks_by<V, 1, int32_t>(executor, functor, shape);
}

}  // namespace baracuda
