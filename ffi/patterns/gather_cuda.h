// The gather pattern on a CUDA grid: each output cell computes itself, V neighbouring columns to a thread.
#pragma once

#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int gather_block = 256;

// A block is `lanes` threads along the columns by gather_block / lanes rows: no division by an extent.
template <int V, class Cell>
__global__ void __launch_bounds__(gather_block)
    gather_cells(Cell cell, int64_t batches, int64_t rows, int64_t columns, int lanes) {
  int64_t row = int64_t(blockIdx.x) * (gather_block / lanes) + threadIdx.x / lanes;
  if (row >= rows) return;
  for (int64_t batch = blockIdx.y; batch < batches; batch += gridDim.y)
    for (int64_t column = threadIdx.x % lanes * V; column < columns; column += lanes * V)
      cell.template cell<V>(batch, row, column);
}

template <int V, class Cell>
Status gather_by(const Executor& executor, const Cell& cell, int64_t batches, int64_t rows, int64_t columns) {
  int lanes = 1;
  while (lanes < gather_block && lanes * V < columns) lanes *= 2;
  dim3 blocks(unsigned(ceil_div(rows, gather_block / lanes)), unsigned(batches < 65535 ? batches : 65535));
  gather_cells<V><<<blocks, gather_block, 0, executor.stream>>>(cell, batches, rows, columns, lanes);
  return launched();
}

}  // namespace internal

template <class Cell>
Status gather(const Executor& executor, const Cell& cell, int64_t batches, int64_t rows, int64_t columns) {
  constexpr int V = 16 / sizeof(typename Cell::Element);
  if (batches * rows * columns == 0) return {};
  if (columns % V == 0) return internal::gather_by<V>(executor, cell, batches, rows, columns);
  return internal::gather_by<1>(executor, cell, batches, rows, columns);
}

}  // namespace baracuda
