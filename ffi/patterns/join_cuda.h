// The join pattern on a CUDA grid: a thread has a few cells of y, far apart, and finds the piece of each.
#pragma once

#include "join.h"

namespace baracuda {
namespace internal {

inline constexpr int join_block = 256, join_step = 4;

template <bool is_split, class Index, class Cell>
__global__ void __launch_bounds__(join_block)
    join_cells(const __grid_constant__ Pieces pieces, Divisor<Index> width, int64_t cells, Index columns, Cell* y) {
  int64_t first = int64_t(blockIdx.x) * join_block * join_step + threadIdx.x;
  Cell values[join_step];
  Cell* to[join_step];
#pragma unroll
  for (int k = 0; k < join_step; ++k) {
    if (first + k * join_block >= cells) continue;
    Index cell = Index(first + k * join_block), row = width.quotient(cell);
    Index column = Index(pieces.start[0]) + cell - row * width.value;
    int i = pieces.of(column);
    Index begin = Index(pieces.start[i]), size = Index(pieces.start[i + 1]) - begin;
    Cell* there = y + row * columns + column;
    Cell* here = static_cast<Cell*>(pieces.piece[i]) + row * size + column - begin;
    values[k] = is_split ? *there : *here;
    to[k] = is_split ? here : there;
  }
#pragma unroll
  for (int k = 0; k < join_step; ++k)
    if (first + k * join_block < cells) *to[k] = values[k];
}

}  // namespace internal

template <bool is_split, class Cell>
Status join_rows(const Executor& executor, const Pieces& pieces, int64_t rows, int64_t columns, Cell* y) {
  int64_t width = pieces.start[pieces.count] - pieces.start[0], cells = rows * width;
  unsigned blocks = unsigned(ceil_div(cells, internal::join_block * internal::join_step));
  auto launch = [&](auto index) {
    using Index = decltype(index);
    internal::join_cells<is_split>
        <<<blocks, internal::join_block, 0, executor.stream>>>(pieces, Divisor<Index>(width), cells, Index(columns), y);
    return launched();
  };
  return rows * columns < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
