// The blockwise pattern on CPU threads.
#pragma once

#include "blockwise.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// The elements [first, first + count), all in one block, or each in the next: the loops that the compiler vectorizes.
// The functor is a copy, which no store may change. Both numbers are multiples of its least width W, as the compiler
// should see.
template <class Functor, class Parameters>
void write_elements(const Functor functor, int64_t first, int64_t count, const Parameters& parameters) {
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
    int64_t element = (first / W + k) * W;
    functor.write(element, functor.template read<W>(element), functor.template block<W>(block + k * W));
  }
}

}  // namespace internal

template <class Functor>
Status run_blockwise(const Executor& executor, const Functor& functor, const BlockShape& shape) {
  constexpr int64_t steps = 1 << 14;
  if (shape.elements() == 0) return {};
  BlockIndex<int64_t> index(shape);
  int64_t tile = std::min<int64_t>(shape.columns, steps), tiles = ceil_div(shape.columns, tile);
  int64_t range = std::max<int64_t>(steps / tile, 1), ranges = ceil_div(shape.rows, range);
  parallel_for(executor, ranges * tiles, range * tile, [&](int64_t task) {
    int64_t first_row = task / tiles * range, first = task % tiles * tile;
    int64_t count = std::min(tile, shape.columns - first);
    for (int64_t row = first_row; row < std::min(first_row + range, shape.rows); ++row) {
      int64_t element = row * shape.columns + first;
      if (shape.by_column)
        internal::write_columns(functor, element, count, index(row) + first);
      else
        internal::write_elements(functor, element, count, functor.template block<1>(index(row)));
    }
  });
  return {};
}

}  // namespace baracuda
