// The blockwise pattern on a CUDA grid: a few vectors of V neighboring columns to a thread, all read before any is
// written.
#pragma once

#include "blockwise.h"

namespace baracuda {
namespace internal {

inline constexpr int blockwise_block = 128;
// So many vectors to a thread: down a few rows, or along one row that is long. Either way a block's elements are next
// to each other in memory; spread over more rows, writes take a tenth more time.
inline constexpr int blockwise_rows = 4, blockwise_vectors = 8;
// Columns have parameters for each lane, which more rows should share.
inline constexpr int blockwise_column_rows = 8;
// Of shorter rows too much is before and after whole vectors.
inline constexpr int blockwise_least_uneven = 256;
// Of fewer elements more threads have one each.
inline constexpr int64_t blockwise_least_elements = 1 << 19;

// A block is threads along the columns by threads along the rows. A thread's vectors are as far apart as the block is
// wide or, in the other direction, high.
template <int V, int rows_each, int vectors_each, class Functor, class Index>
__global__ void __launch_bounds__(blockwise_block)
    row_elements(Functor functor, BlockIndex<Index> index, Index rows, int64_t columns) {
  constexpr int count = rows_each * vectors_each;
  Index row = Index(blockIdx.x) * (blockDim.y * rows_each) + threadIdx.y, last = rows - 1;
  int64_t down = blockDim.y * columns, along = blockDim.x * V;
  for (int64_t tile = blockIdx.y; tile * along * vectors_each < columns; tile += gridDim.y) {
    int64_t column = tile * along * vectors_each + threadIdx.x * V, element = row * columns + column;
    if (column >= columns) return;
    auto at = [&](int k) { return element + (k / vectors_each) * down + (k % vectors_each) * along; };
    auto in_range = [&](int k) {
      return row + (k / vectors_each) * int(blockDim.y) <= last && column + (k % vectors_each) * along < columns;
    };
    // Where parameters are worked on, several rows' are not asked for before the values: these would wait for that.
    constexpr bool is_first = rows_each == 1 || !Functor::works_on_parameters;
    decltype(functor.template block<1>(0)) blocks[rows_each];
    // What is beyond the last row reads the last one's: a branch would part these loads from the others.
    auto read_blocks = [&] {
#pragma unroll
      for (int i = 0; i < rows_each; ++i)
        blocks[i] = functor.template block<1>(index(min(row + i * int(blockDim.y), last)));
    };
    if constexpr (is_first) read_blocks();
    decltype(functor.template read<V>(0)) values[count];
#pragma unroll
    for (int k = 0; k < count; ++k)
      if (in_range(k)) values[k] = functor.template read<V>(at(k));
    if constexpr (!is_first) read_blocks();
#pragma unroll
    for (int k = 0; k < count; ++k)
      if (in_range(k)) functor.write(at(k), values[k], blocks[k / vectors_each]);
  }
}

// Rows that are no whole number of vectors: these begin where memory is aligned, in each row at another column, and
// what is before and after them has less than V columns each. Its threads are the first ones of the row, W columns
// each.
template <int V, int W, int vectors_each, class Functor, class Index>
__global__ void __launch_bounds__(blockwise_block)
    uneven_row_elements(Functor functor, BlockIndex<Index> index, Index rows, int64_t columns) {
  Index row = Index(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  int64_t base = row * columns, along = blockDim.x * V;
  int before = int((V - base % V) % V), after = int((columns - before) % V);
  int64_t end = columns - after;
  auto block = functor.template block<1>(index(row));
  for (int64_t tile = blockIdx.y; tile * along * vectors_each < columns; tile += gridDim.y) {
    int64_t column = before + tile * along * vectors_each + threadIdx.x * V;
    decltype(functor.template read<V>(0)) values[vectors_each];
#pragma unroll
    for (int k = 0; k < vectors_each; ++k)
      if (column + k * along < end) values[k] = functor.template read<V>(base + column + k * along);
    if (tile == 0)
      for (int k = threadIdx.x * W; k < before + after; k += blockDim.x * W) {
        int64_t element = base + (k < before ? k : end + k - before);
        functor.write(element, functor.template read<W>(element), block);
      }
#pragma unroll
    for (int k = 0; k < vectors_each; ++k)
      if (column + k * along < end) functor.write(base + column + k * along, values[k], block);
  }
}

// Each column has its parameters. Neighboring blocks do neighboring columns: down the rows first, what is written at
// a time lies far apart.
template <int V, class Functor, class Index>
__global__ void __launch_bounds__(blockwise_block)
    column_elements(Functor functor, BlockIndex<Index> index, Index rows, int64_t columns) {
  constexpr int rows_each = blockwise_column_rows;
  int64_t column = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * V, down = blockDim.y * columns;
  if (column >= columns) return;
  Index last = rows - 1, step = Index(gridDim.y) * (blockDim.y * rows_each);
  for (Index row = Index(blockIdx.y) * (blockDim.y * rows_each) + threadIdx.y; row <= last; row += step) {
    int64_t element = row * columns + column;
    auto parameters = [&](int k) { return index(row + k * Index(blockDim.y)) + column; };
    auto in_range = [&](int k) { return row + k * Index(blockDim.y) <= last; };
    decltype(functor.template read<V>(0)) values[rows_each];
#pragma unroll
    for (int k = 0; k < rows_each; ++k)
      if (in_range(k)) values[k] = functor.template read<V>(element + k * down);
    auto block = functor.template block<V>(parameters(0));
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
      if (!in_range(k)) break;
      if (k > 0 && parameters(k) != parameters(k - 1)) block = functor.template block<V>(parameters(k));  // seldom
      functor.write(element + k * down, values[k], block);
    }
  }
}

inline dim3 blocks_of_threads(const BlockShape& shape, int V) {
  unsigned lanes = 1;
  while (lanes < blockwise_block && lanes * V < shape.columns) lanes *= 2;
  return dim3(lanes, blockwise_block / lanes);
}

template <int V, int rows_each, int vectors_each, class Index, class Functor>
Status run_rows(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  dim3 block = blocks_of_threads(shape, V);
  int64_t tiles = ceil_div(shape.columns, int64_t(block.x) * V * vectors_each);
  dim3 grid(unsigned(ceil_div(shape.rows, int64_t(block.y) * rows_each)), unsigned(std::min<int64_t>(tiles, 65535)));
  row_elements<V, rows_each, vectors_each>
      <<<grid, block, 0, executor.stream>>>(functor, BlockIndex<Index>(shape), Index(shape.rows), shape.columns);
  return launched();
}

template <int V, int W, int vectors_each, class Functor>
Status run_uneven_rows(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  dim3 block = blocks_of_threads(shape, V * vectors_each);
  int64_t tiles = ceil_div(shape.columns, int64_t(block.x) * V * vectors_each);
  dim3 grid(unsigned(ceil_div(shape.rows, block.y)), unsigned(std::min<int64_t>(tiles, 65535)));
  uneven_row_elements<V, W, vectors_each>
      <<<grid, block, 0, executor.stream>>>(functor, BlockIndex<int32_t>(shape), int32_t(shape.rows), shape.columns);
  return launched();
}

template <int V, class Index, class Functor>
Status run_columns(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  dim3 block = blocks_of_threads(shape, V);
  int64_t groups = ceil_div(shape.rows, int64_t(block.y) * blockwise_column_rows);
  dim3 grid(unsigned(ceil_div(shape.columns, int64_t(block.x) * V)), unsigned(std::min<int64_t>(groups, 65535)));
  column_elements<V>
      <<<grid, block, 0, executor.stream>>>(functor, BlockIndex<Index>(shape), Index(shape.rows), shape.columns);
  return launched();
}

}  // namespace internal

template <class Functor>
Status run_blockwise(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  using namespace internal;
  constexpr int V = 16 / sizeof(typename Functor::Element), W = Functor::least_width;
  constexpr int vectors = std::min<int>(blockwise_vectors, 32 / V);
  constexpr int64_t reach = (int64_t(1) << 31) - (1 << 27);  // a step beyond the end, too
  if (shape.elements() == 0) return {};
  bool is_far = shape.rows >= reach, is_uneven = shape.columns % V != 0;
  if (shape.by_column) {
    if (is_far) return run_columns<W, int64_t>(executor, functor, shape);
    if (is_uneven) return run_columns<W, int32_t>(executor, functor, shape);
    return run_columns<V, int32_t>(executor, functor, shape);
  }
  if (is_far) return run_rows<W, blockwise_rows, 1, int64_t>(executor, functor, shape);
  if (is_uneven && shape.columns >= blockwise_least_uneven && shape.elements() >= blockwise_least_elements)
    return run_uneven_rows<V, W, vectors>(executor, functor, shape);
  if (is_uneven) return run_rows<W, blockwise_rows, 1, int32_t>(executor, functor, shape);
  if (shape.columns > blockwise_block * V * vectors / 2)
    return run_rows<V, 1, vectors, int32_t>(executor, functor, shape);
  return run_rows<V, blockwise_rows, 1, int32_t>(executor, functor, shape);
}

}  // namespace baracuda
