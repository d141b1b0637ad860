// The blocks pattern on a CUDA grid: a few vectors of V neighbouring columns to a thread, all read before any is
// written.
#pragma once

#include "blocks.h"

namespace baracuda {
namespace internal {

inline constexpr int blocks_block = 128;
// So many vectors to a thread: down a few rows, or along one row that is long. Either way a block's cells are next to
// each other in memory; spread over more rows, writes take a tenth more time.
inline constexpr int blocks_rows = 4, blocks_vectors = 8;

// A block is threads along the columns by threads along the rows. A thread's vectors are as far apart as the block is
// wide or, in the other direction, high.
template <int V, int K, int rows_each, int vectors_each, class Functor, class Index>
__global__ void __launch_bounds__(blocks_block)
    block_cells(Functor functor, BlockIndex<Index> index, Index rows, int64_t columns, bool by_column) {
  static_assert(K == 1 || vectors_each == 1, "another vector has other parameters");
  constexpr int count = rows_each * vectors_each;
  Index row = Index(blockIdx.x) * (blockDim.y * rows_each) + threadIdx.y, last = rows - 1;
  int64_t down = blockDim.y * columns, along = blockDim.x * V;
  for (int64_t tile = blockIdx.y; tile * along * vectors_each < columns; tile += gridDim.y) {
    int64_t column = tile * along * vectors_each + threadIdx.x * V, cell = row * columns + column;
    if (column >= columns) return;
    // What is beyond the last row reads the last one's parameters: a branch would part these loads from the others.
    auto parameters = [&](int i) { return index(min(row + i * int(blockDim.y), last)) + (by_column ? column : 0); };
    auto at = [&](int k) { return cell + (k / vectors_each) * down + (k % vectors_each) * along; };
    auto in_range = [&](int k) {
      return row + (k / vectors_each) * int(blockDim.y) <= last && column + (k % vectors_each) * along < columns;
    };
    decltype(functor.template block<K>(0)) blocks[K == 1 ? rows_each : 1];
    decltype(functor.template read<V>(0)) values[count];
    if constexpr (K == 1)
#pragma unroll
      for (int i = 0; i < rows_each; ++i) blocks[i] = functor.template block<1>(parameters(i));
    else
      blocks[0] = functor.template block<K>(parameters(0));
#pragma unroll
    for (int k = 0; k < count; ++k)
      if (in_range(k)) values[k] = functor.template read<V>(at(k));
#pragma unroll
    for (int k = 0; k < count; ++k) {
      int i = k / vectors_each;
      if (K > 1 && i > 0 && parameters(i) != parameters(i - 1))  // seldom
        blocks[0] = functor.template block<K>(parameters(i));
      if (in_range(k)) functor.write(at(k), values[k], blocks[K == 1 ? i : 0]);
    }
  }
}

template <int V, int K, int rows_each, int vectors_each, class Index, class Functor>
Status run_blocks_by(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  unsigned lanes = 1;
  while (lanes < blocks_block && lanes * V < shape.columns) lanes *= 2;
  dim3 block(lanes, blocks_block / lanes);
  int64_t tiles = ceil_div(shape.columns, int64_t(lanes) * V * vectors_each);
  dim3 grid(unsigned(ceil_div(shape.rows, int64_t(block.y) * rows_each)), unsigned(std::min<int64_t>(tiles, 65535)));
  block_cells<V, K, rows_each, vectors_each><<<grid, block, 0, executor.stream>>>(
      functor, BlockIndex<Index>(shape), Index(shape.rows), shape.columns, shape.by_column);
  return launched();
}

}  // namespace internal

template <class Functor>
Status run_blocks(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  using namespace internal;
  constexpr int V = 16 / sizeof(typename Functor::Element), W = Functor::least_width;
  constexpr int vectors = std::min<int>(blocks_vectors, 32 / V);
  constexpr int64_t reach = (int64_t(1) << 31) - blocks_block * blocks_rows;
  if (shape.cells() == 0) return {};
  if (shape.rows >= reach) return run_blocks_by<W, 1, blocks_rows, 1, int64_t>(executor, functor, shape);
  if (shape.columns % V) return run_blocks_by<W, 1, blocks_rows, 1, int32_t>(executor, functor, shape);
  if (shape.by_column) return run_blocks_by<V, V, blocks_rows, 1, int32_t>(executor, functor, shape);
  if (shape.columns > blocks_block * V * vectors / 2)
    return run_blocks_by<V, 1, 1, vectors, int32_t>(executor, functor, shape);
  return run_blocks_by<V, 1, blocks_rows, 1, int32_t>(executor, functor, shape);
}

}  // namespace baracuda
