// The tile pattern on CPU threads.
#pragma once

#include <vector>

#include "tile.h"

namespace baracuda {
namespace internal {

// Cells [begin, end) of a row of y that repeats `period` cells of x. Short periods are doubled, from what is written.
template <class Cell>
void copy_row(const Cell* from, int64_t period, Cell* to, int64_t begin, int64_t end) {
  constexpr int64_t long_bytes = 4096, short_cells = 32;
  if (end - begin <= short_cells) {
    for (int64_t i = begin, k = begin % period; i < end; ++i, k = k + 1 == period ? 0 : k + 1) to[i] = from[k];
    return;
  }
  int64_t done = begin, written = std::min(end, begin + period);
  while (done < written) {
    int64_t k = done % period, count = std::min(written - done, period - k);
    memcpy(to + done, from + k, size_t(count) * sizeof(Cell));
    done += count;
  }
  bool is_long = period * int64_t(sizeof(Cell)) >= long_bytes;
  while (done < end) {
    int64_t whole = is_long ? period : (done - begin) / period * period, count = std::min(end - done, whole);
    memcpy(to + done, to + begin + (done - begin) % period, size_t(count) * sizeof(Cell));
    done += count;
  }
}

// Copies are added side by side, in lanes: the cells of a row, and where these are few also neighbouring copies. The
// number of lanes depends on the shape alone.
template <class Reducer, class Value, bool last>
struct CopyReduction {
  using Wide = typename Reducer::Wide;
  using Out = std::conditional_t<last, typename Reducer::Element, Wide>;
  static constexpr int64_t most_lanes = 512, few_lanes = 64;

  const Reducer& reducer;
  const TileShape& shape;
  int64_t shares;
  const Value* y;
  Out* x;  // [batches, shares, cells]
  Tiles<int64_t> tiles{shape};

  // Cells [column, column + count) of a row, copies [begin, end).
  void reduce(int64_t row, int64_t column, int64_t count, int64_t begin, int64_t end, Out* to) const {
    Wide sums[most_lanes];
    int64_t inner = shape.inner(), together = 1;
    if (count == inner) together = std::max<int64_t>(1, std::min(shape.inner_repeats(), few_lanes / inner));
    for (int64_t k = 0; k < together * count; ++k) sums[k] = reducer.start();
    const Value* first = y + tiles.first(row) + column;
    for (int64_t copy = begin; copy < end;) {
      const Value* from = first + tiles.offset(copy);
      int64_t run = std::min(end - copy, shape.inner_repeats() - copy % shape.inner_repeats());
      for (int64_t i = 0; i < run; i += together) add(sums, from + i * inner, std::min(together, run - i) * count);
      copy += run;
    }
    for (int64_t i = 1; i < together; ++i) add(sums, sums + i * count, count);
    for (int64_t k = 0; k < count; ++k) {
      if constexpr (last)
        to[k] = reducer.finish(sums[k]);
      else
        to[k] = sums[k];
    }
  }
  template <class Term>
  void add(Wide* sums, const Term* terms, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) sums[k] = reducer.add(sums[k], terms[k]);
  }

  void run(const Executor& executor) const {
    constexpr int64_t task_steps = 1 << 15;
    int64_t inner = shape.inner(), rows = shape.x_cells() / inner, batch_rows = rows / shape.batches;
    int64_t share = ceil_div(shape.copies(), shares), columns = ceil_div(inner, most_lanes);
    int64_t items = rows * shares * columns, cost = std::min(inner, most_lanes) * share + 32;
    int64_t stretch = task_steps / cost + 1;
    parallel_for(executor, ceil_div(items, stretch), stretch * cost, [&](int64_t task) {
      for (int64_t item = task * stretch; item < std::min(items, (task + 1) * stretch); ++item) {
        int64_t row = item / columns / shares, part = item / columns % shares, column = item % columns * most_lanes;
        int64_t batch = row / batch_rows, place = (batch * shares + part) * batch_rows + row % batch_rows;
        reduce(row, column, std::min(most_lanes, inner - column), std::min(shape.copies(), part * share),
               std::min(shape.copies(), (part + 1) * share), x + place * inner + column);
      }
    });
  }
};

// Where cells are few and copies many, the copies are cut into shares: as many as the shape of a batch says.
inline int64_t tile_shares(const TileShape& shape) {
  constexpr int64_t many_cells = 1 << 13, share_steps = 1 << 15, most = 64;
  int64_t cells = shape.cells();
  if (cells >= many_cells) return 1;
  return std::max<int64_t>(1, std::min({most, shape.copies(), cells * shape.copies() / share_steps}));
}

}  // namespace internal

template <class Cell>
Status copy_cells(const Executor& executor, const TileShape& shape, const Cell* x, Cell* y) {
  if (shape.y_cells() == 0) return {};
  constexpr int64_t task_cells = (1 << 17) / sizeof(Cell);
  Tiles<int64_t> tiles(shape);
  int64_t inner = shape.inner(), columns = tiles.y_inner.value, rows = shape.y_cells() / columns;
  int64_t parts = ceil_div(columns, task_cells), stretch = task_cells / columns + 1;
  if (parts > 1) stretch = 1;
  int64_t width = ceil_div(columns, parts), cost = std::min(columns, width) * stretch * sizeof(Cell) / 4;
  parallel_for(executor, ceil_div(rows, stretch) * parts, cost, [&](int64_t task) {
    int64_t first = task / parts * stretch, begin = task % parts * width;
    for (int64_t row = first; row < std::min(rows, first + stretch); ++row) {
      auto [from, to] = tiles.rows(row);
      internal::copy_row(x + from, inner, y + to, begin, std::min(columns, begin + width));
    }
  });
  return {};
}

template <class Reducer>
Status reduce_copies(const Executor& executor, const Reducer& reducer, const TileShape& shape,
                     const typename Reducer::Element* y, typename Reducer::Element* x) {
  using Element = typename Reducer::Element;
  using Wide = typename Reducer::Wide;
  if (shape.x_cells() == 0) return {};
  if (shape.copies() == 0) {
    std::fill(x, x + shape.x_cells(), reducer.finish(reducer.start()));
    return {};
  }
  int64_t shares = internal::tile_shares(shape);
  if (shares == 1) {
    internal::CopyReduction<Reducer, Element, true>{reducer, shape, 1, y, x}.run(executor);
    return {};
  }
  std::vector<Wide> parts(size_t(shape.x_cells() * shares));
  internal::CopyReduction<Reducer, Element, false>{reducer, shape, shares, y, parts.data()}.run(executor);
  TileShape of_parts{shape.batches, 1, {shape.cells()}, {shares}};
  internal::CopyReduction<Reducer, Wide, true>{reducer, of_parts, 1, parts.data(), x}.run(executor);
  return {};
}

}  // namespace baracuda
