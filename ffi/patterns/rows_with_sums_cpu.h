// The rows pattern with sums of columns, on CPU threads: each row is reduced and then written with what that gave, and
// its elements are added to the sums of their columns. A task has so many neighboring rows, by the shapes alone, and
// sums of its own; those of all tasks are added in their order. Of few long rows the sums are a pass of their own, by
// columns.
#pragma once

#include <algorithm>
#include <memory>

#include "rows_cpu.h"
#include "rows_with_sums.h"

namespace baracuda {

namespace internal {

// What the elements [first, first + count) of a row add to sums of their columns; they are written too where `writes`.
// The functor is a copy, and the loop such as the compiler vectorizes.
template <bool writes, class Functor, class Block>
void write_and_sum(const Functor functor, int64_t first, int64_t count, const Block block,
                   typename Functor::Wide* of_weight, typename Functor::Wide* of_bias) {
  using Wide = typename Functor::Wide;
  BARACUDA_INDEPENDENT
  for (int64_t k = 0; k < count; ++k) {
    auto in = functor.template read<1>(first + k);
    Wide x = Wide(in.x.lane[0]), dy = Wide(in.dy.lane[0]);
    if constexpr (writes) functor.write(first + k, in, block);
    of_weight[k] += functor.of_weight(x, dy);
    if constexpr (Functor::column_sums == 2) of_bias[k] += dy;
  }
}

}  // namespace internal

// `rows` of each batch, which has sums of its own.
template <class Functor, class T = typename Functor::Element>
Status run_rows_with_sums(const Executor& executor, const Functor& functor, int64_t batches, int64_t rows,
                          int64_t columns, ColumnSums<T> of_weight, ColumnSums<T> of_bias) {
  using Wide = typename Functor::Wide;
  constexpr int sums = Functor::column_sums;
  constexpr int64_t steps = 1 << 16, most_parts = 64, least_rows = 8, tile = 512;
  if (batches * rows * columns == 0) return {};
  int64_t parts = std::clamp(ceil_div(rows * columns, steps), int64_t(1), most_parts);
  int64_t range = ceil_div(rows, parts), size = sums * columns;
  parts = ceil_div(rows, range);
  bool is_long = parts > 1 && range < least_rows;
  parts = is_long ? 1 : parts;
  std::unique_ptr<Wide[]> found(new Wide[batches * parts * size]);
  auto of = [&](int64_t part, int which) { return found.get() + part * size + which * columns; };

  if (is_long) {
    Status status = run_rows(executor, functor, batches * rows, columns);
    if (!status.ok()) return status;
    int64_t tiles = ceil_div(columns, tile);
    parallel_for(executor, batches * tiles, rows * tile, [&](int64_t task) {
      int64_t batch = task / tiles, first = task % tiles * tile, count = std::min(tile, columns - first);
      Wide *weight = of(batch, 0) + first, *bias = of(batch, sums - 1) + first;
      std::fill_n(weight, count, Wide(0)), std::fill_n(bias, count, Wide(0));
      for (int64_t row = batch * rows; row < (batch + 1) * rows; ++row)
        internal::write_and_sum<false>(functor.at(row), row * columns + first, count, 0, weight, bias);
    });
  } else {
    parallel_for(executor, batches * parts, range * columns, [&](int64_t task) {
      int64_t begin = task / parts * rows, first = task % parts * range, end = std::min(first + range, rows);
      Wide *weight = of(task, 0), *bias = of(task, sums - 1);
      std::fill_n(weight, size, Wide(0));
      for (int64_t row = begin + first; row < begin + end; ++row) {
        auto of_row = functor.at(row);
        auto block = of_row.block(internal::reduce_row(of_row, row * columns, columns));
        internal::write_and_sum<true>(of_row, row * columns, columns, block, weight, bias);
      }
    });
  }
  int64_t tiles = ceil_div(columns, tile);
  parallel_for(executor, batches * tiles, parts * sums * tile, [&](int64_t task) {
    int64_t batch = task / tiles, first = task % tiles * tile, last = std::min(first + tile, columns);
    for (int which = 0; which < sums; ++which) {
      Wide* total = of(batch * parts, which);
      for (int64_t part = 1; part < parts; ++part) {
        const Wide* more = of(batch * parts + part, which);
        for (int64_t k = first; k < last; ++k) total[k] += more[k];
      }
      const ColumnSums<T>& to = which ? of_bias : of_weight;
      for (int64_t k = first; k < last; ++k) to.write(batch * columns + k, total[k]);
    }
  });
  return {};
}

}  // namespace baracuda
