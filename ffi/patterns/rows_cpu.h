// The rows pattern on CPU threads: each row is reduced, and then written with what that gave.
//
// The functor reads (`read<V>`), reduces (`start`, `push`, `merge`), turns a row's state into its block (`block`),
// writes what the row has once (`finish`), and then its cells (`write`).
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {

template <class Functor>
Status run_rows(const Executor& executor, const Functor& functor, int64_t rows, int64_t columns) {
  using Element = typename Functor::Element;
  constexpr int V = 64 / sizeof(Element), W = Functor::least_width;
  constexpr int64_t steps = 1 << 14;
  if (rows == 0) return {};
  int64_t stretch = steps / (columns + 1) + 1;
  parallel_for(executor, ceil_div(rows, stretch), stretch * columns, [&](int64_t task) {
    for (int64_t row = task * stretch; row < std::min((task + 1) * stretch, rows); ++row) {
      int64_t first = row * columns, column = 0;
      auto state = functor.start();
      for (; column + V <= columns; column += V) functor.push(state, functor.template read<V>(first + column));
      for (; column < columns; ++column) functor.push(state, functor.template read<1>(first + column));
      auto block = functor.block(state);
      functor.finish(row, block);
      for (column = 0; column + V <= columns; column += V)
        functor.write(first + column, functor.template read<V>(first + column), block);
      for (; column < columns; column += W)
        functor.write(first + column, functor.template read<W>(first + column), block);
    }
  });
  return {};
}

}  // namespace baracuda
