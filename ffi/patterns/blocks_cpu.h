// The blocks pattern on CPU threads.
#pragma once

#include "blocks.h"

namespace baracuda {

template <class Functor>
Status run_blocks(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  using Element = typename Functor::Element;
  constexpr int V = 64 / sizeof(Element), W = Functor::least_width;
  constexpr int64_t steps = 1 << 14;
  if (shape.cells() == 0) return {};
  BlockIndex<int64_t> index(shape);
  int64_t tile = std::min<int64_t>(shape.columns, steps), tiles = ceil_div(shape.columns, tile);
  int64_t stretch = std::max<int64_t>(steps / tile, 1), stretches = ceil_div(shape.rows, stretch);
  parallel_for(executor, stretches * tiles, stretch * tile, [&](int64_t task) {
    int64_t first_row = task / tiles * stretch, first = task % tiles * tile;
    int64_t last = std::min(first + tile, shape.columns);
    for (int64_t row = first_row; row < std::min(first_row + stretch, shape.rows); ++row) {
      int64_t block = index(row), cell = row * shape.columns, column = first;
      if (shape.by_column) {
        for (; column + V <= last; column += V)
          functor.write(cell + column, functor.template read<V>(cell + column),
                        functor.template block<V>(block + column));
        for (; column < last; column += W)
          functor.write(cell + column, functor.template read<W>(cell + column),
                        functor.template block<W>(block + column));
      } else {
        auto scales = functor.template block<1>(block);
        for (; column + V <= last; column += V)
          functor.write(cell + column, functor.template read<V>(cell + column), scales);
        for (; column < last; column += W)
          functor.write(cell + column, functor.template read<W>(cell + column), scales);
      }
    }
  });
  return {};
}

}  // namespace baracuda
