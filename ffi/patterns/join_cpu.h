// The join pattern on CPU threads, each with a stretch of y.
#pragma once

#include "join.h"

namespace baracuda {

// Cells of the pieces go to y, or, to split it, those of y to the pieces.
template <bool is_split, class Cell>
Status join_rows(const Executor& executor, const Pieces& pieces, int64_t rows, int64_t columns, Cell* y) {
  constexpr int64_t task_cells = (1 << 17) / sizeof(Cell);
  int64_t first = pieces.start[0], width = pieces.start[pieces.count] - first, cells = rows * width;
  parallel_for(executor, ceil_div(cells, task_cells), task_cells * int64_t(sizeof(Cell)) / 4, [&](int64_t task) {
    int64_t cell = task * task_cells, end = std::min(cells, cell + task_cells);
    int64_t row = cell / width, column = first + cell % width;
    for (int i = pieces.of(column); cell < end;) {
      int64_t size = pieces.start[i + 1] - pieces.start[i], at = column - pieces.start[i];
      int64_t count = std::min(size - at, end - cell);
      Cell* there = y + row * columns + column;
      Cell* here = static_cast<Cell*>(pieces.piece[i]) + row * size + at;
      memcpy(is_split ? here : there, is_split ? there : here, size_t(count) * sizeof(Cell));
      cell += count, column += count;
      if (++i == pieces.count) i = 0, column = first, ++row;
    }
  });
  return {};
}

}  // namespace baracuda
