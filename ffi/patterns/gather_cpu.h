// The gather pattern on CPU threads: each output cell computes itself, V neighbouring columns at a time.
#pragma once

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {

template <class Cell>
Status gather(const Executor& executor, const Cell& cell, typename Cell::Element* out, int64_t batches, int64_t rows,
              int64_t columns) {
  constexpr int V = 64 / sizeof(typename Cell::Element);
  constexpr int64_t steps = 1 << 14;
  if (batches * rows * columns == 0) return {};
  int64_t stretch = steps / columns + 1, stretches = ceil_div(rows, stretch);
  parallel_for(executor, batches * stretches, stretch * columns, [&](int64_t task) {
    int64_t batch = task / stretches, first = task % stretches * stretch;
    for (int64_t row = first; row < std::min(rows, first + stretch); ++row) {
      typename Cell::Element* to = out + (batch * rows + row) * columns;
      int64_t column = 0;
      for (; column + V <= columns; column += V) store<V>(to + column, cell.template at<V>(batch, row, column));
      for (; column < columns; ++column) store<1>(to + column, cell.template at<1>(batch, row, column));
    }
  });
  return {};
}

}  // namespace baracuda
