// The pick pattern on CPU threads.
#pragma once

#include "pick.h"

namespace baracuda {

template <class Cell>
Status pick_rows(const Executor& executor, const PickShape& shape, const int32_t* index, const Cell* x, Cell* y) {
  constexpr int64_t task_cells = (1 << 17) / sizeof(Cell);
  int64_t all = shape.batches * shape.rows, width = std::min(shape.columns, task_cells);
  int64_t parts = ceil_div(shape.columns, width), stretch = task_cells / width;
  parallel_for(executor, ceil_div(all, stretch) * parts, stretch * (width + 8) * int64_t(sizeof(Cell)) / 4,
               [&](int64_t task) {
                 int64_t row = task / parts * stretch, end = std::min(all, row + stretch);
                 int64_t first = task % parts * width, count = std::min(width, shape.columns - first);
                 for (; row < end; ++row) {
                   const Cell* from = x + shape.place(index, row) + first;
                   Cell* to = y + row * shape.columns + first;
                   if (count == 1)
                     *to = *from;
                   else
                     memcpy(to, from, size_t(count) * sizeof(Cell));
                 }
               });
  return {};
}

}  // namespace baracuda
