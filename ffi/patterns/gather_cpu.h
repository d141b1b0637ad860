// The gather pattern on CPU threads: each output element computes itself, V neighboring columns at a time.
#pragma once

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {

template <class Gather>
Status gather(const Executor& executor, const Gather& element, typename Gather::Element* out, int64_t batches,
              int64_t rows, int64_t columns) {
  constexpr int V = 64 / sizeof(typename Gather::Element);
  constexpr int64_t steps = 1 << 14;
  if (batches * rows * columns == 0) return {};
  int64_t range = steps / columns + 1, ranges = ceil_div(rows, range);
  parallel_for(executor, batches * ranges, range * columns, [&](int64_t task) {
    int64_t batch = task / ranges, first = task % ranges * range;
    for (int64_t row = first; row < std::min(rows, first + range); ++row) {
      typename Gather::Element* to = out + (batch * rows + row) * columns;
      int64_t column = 0;
      for (; column + V <= columns; column += V) store<V>(to + column, element.template at<V>(batch, row, column));
      for (; column < columns; ++column) store<1>(to + column, element.template at<1>(batch, row, column));
    }
  });
  return {};
}

}  // namespace baracuda
