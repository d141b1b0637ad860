// The pick pattern on a CUDA grid: a thread has a few cells of y, far apart.
#pragma once

#include "pick.h"

namespace baracuda {
namespace internal {

inline constexpr int pick_block = 256, pick_step = 4;

template <class Index, class Cell>
__global__ void __launch_bounds__(pick_block)
    pick_cells(PickShape shape, Divisor<Index> columns, int64_t cells, const int32_t* index, const Cell* x, Cell* y) {
  int64_t first = int64_t(blockIdx.x) * pick_block * pick_step + threadIdx.x;
  Cell values[pick_step];
#pragma unroll
  for (int i = 0; i < pick_step; ++i) {
    if (first + i * pick_block >= cells) continue;
    Index cell = Index(first + i * pick_block), row = columns.quotient(cell);
    values[i] = x[shape.place(index, row) + cell - row * columns.value];
  }
#pragma unroll
  for (int i = 0; i < pick_step; ++i)
    if (first + i * pick_block < cells) y[first + i * pick_block] = values[i];
}

}  // namespace internal

template <class Cell>
Status pick_rows(const Executor& executor, const PickShape& shape, const int32_t* index, const Cell* x, Cell* y) {
  int64_t cells = shape.batches * shape.rows * shape.columns;
  unsigned blocks = unsigned(ceil_div(cells, internal::pick_block * internal::pick_step));
  auto launch = [&](auto type) {
    using Index = decltype(type);
    internal::pick_cells<<<blocks, internal::pick_block, 0, executor.stream>>>(shape, Divisor<Index>(shape.columns),
                                                                               cells, index, x, y);
    return launched();
  };
  return cells < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
