// The blocks pattern on CPU threads.
#pragma once

#include "blocks.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// The cells [first, first + count), all in one block, or each in the next: the loops that the compiler vectorises. The
// functor is a copy, which no store may change. Both numbers are multiples of its least width W, as the compiler should
// see.
template <class Functor, class Parameters>
void write_cells(const Functor functor, int64_t first, int64_t count, const Parameters& parameters) {
  constexpr int W = Functor::least_width;
  BARACUDA_INDEPENDENT
  for (int64_t k = first / W; k < (first + count) / W; ++k)
    functor.write(k * W, functor.template read<W>(k * W), parameters);
}
template <class Functor>
void write_columns(const Functor functor, int64_t first, int64_t count, int64_t block) {
  constexpr int W = Functor::least_width;
  BARACUDA_INDEPENDENT
  for (int64_t k = 0; k < count / W; ++k) {
    int64_t cell = (first / W + k) * W;
    functor.write(cell, functor.template read<W>(cell), functor.template block<W>(block + k * W));
  }
}

}  // namespace internal

template <class Functor>
Status run_blocks(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  constexpr int64_t steps = 1 << 14;
  if (shape.cells() == 0) return {};
  BlockIndex<int64_t> index(shape);
  int64_t tile = std::min<int64_t>(shape.columns, steps), tiles = ceil_div(shape.columns, tile);
  int64_t stretch = std::max<int64_t>(steps / tile, 1), stretches = ceil_div(shape.rows, stretch);
  parallel_for(executor, stretches * tiles, stretch * tile, [&](int64_t task) {
    int64_t first_row = task / tiles * stretch, first = task % tiles * tile;
    int64_t count = std::min(tile, shape.columns - first);
    for (int64_t row = first_row; row < std::min(first_row + stretch, shape.rows); ++row) {
      int64_t cell = row * shape.columns + first;
      if (shape.by_column)
        internal::write_columns(functor, cell, count, index(row) + first);
      else
        internal::write_cells(functor, cell, count, functor.template block<1>(index(row)));
    }
  });
  return {};
}

}  // namespace baracuda
