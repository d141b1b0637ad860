// The tile pattern on CPU threads.
#pragma once

#include <vector>

#include "tile.h"

namespace baracuda {
namespace internal {

// A short row of y, which is `times` times `period` elements of x.
template <class T>
inline void copy_short_row(const T* from, int64_t period, T* to, int64_t times) {
  for (int64_t k = 0; k < period; ++k) {
    T value = from[k];
    for (int64_t i = 0; i < times; ++i) to[i * period + k] = value;
  }
}

// Elements [begin, end) of a row of y that repeats `period` elements of x. Short periods are doubled, from what is
// written.
template <class T>
[[gnu::noinline]] void copy_row(const T* from, int64_t period, T* to, int64_t begin, int64_t end) {
  constexpr int64_t long_bytes = 4096;
  int64_t done = begin, written = std::min(end, begin + period);
  while (done < written) {
    int64_t k = done % period, count = std::min(written - done, period - k);
    memcpy(to + done, from + k, size_t(count) * sizeof(T));
    done += count;
  }
  bool is_long = period * int64_t(sizeof(T)) >= long_bytes;
  while (done < end) {
    int64_t whole = is_long ? period : (done - begin) / period * period, count = std::min(end - done, whole);
    memcpy(to + done, to + begin + (done - begin) % period, size_t(count) * sizeof(T));
    done += count;
  }
}

// Copies are added side by side, in lanes, of which the shape alone says how many. Where rows of y are short, lanes are
// all elements of neighboring rows: the copies along the axes before the last are added first, then those in each row.
// Where they are long, lanes are elements of a row of x, and of a few neighboring copies where these elements are few.
template <class Reducer, class Value, bool last>
struct CopyReduction {
  using Wide = typename Reducer::Wide;
  using Out = std::conditional_t<last, typename Reducer::Element, Wide>;
  static constexpr int64_t most_lanes = 512, few_lanes = 64;

  const Reducer& reducer;
  const TileShape& shape;
  const Value* y;
  Tiles<int64_t> tiles{shape};
  bool is_short = tiles.y_inner.value <= most_lanes / 2;
  int64_t copies = is_short ? shape.copies() / shape.inner_repeats() : shape.copies();

  // Where elements are few and copies many, these are cut into chunks: as many as the shape of a batch says.
  int64_t chunks() const {
    constexpr int64_t many_elements = 1 << 13, chunk_steps = 1 << 15, most = 64;
    if (shape.elements() >= many_elements) return 1;
    return std::max<int64_t>(1, std::min({most, copies, shape.elements() * shape.copies() / chunk_steps}));
  }

  // `rows` rows from `row` on, copies [begin, end) along the axes before the last.
  void reduce_short(int64_t row, int64_t rows, int64_t begin, int64_t end, Out* to) const {
    Wide sums[most_lanes];
    int64_t inner = shape.inner(), repeats = shape.inner_repeats(), lanes = rows * repeats * inner;
    clear(sums, lanes);
    const Value* first = y + tiles.first(row);
    for (int64_t copy = begin; copy < end; ++copy) add(sums, first + tiles.offset(copy * repeats), lanes);
    if (inner == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        Wide sum = sums[i * repeats];
        for (int64_t k = 1; k < repeats; ++k) sum = reducer.add(sum, sums[i * repeats + k]);
        to[i] = finished(sum);
      }
      return;
    }
    for (int64_t i = 0; i < rows; ++i) {
      Wide* of_row = sums + i * repeats * inner;
      for (int64_t k = 1; k < repeats; ++k) add(of_row, of_row + k * inner, inner);
      for (int64_t k = 0; k < inner; ++k) to[i * inner + k] = finished(of_row[k]);
    }
  }
  // Elements [column, column + count) of a row, copies [begin, end).
  void reduce_long(int64_t row, int64_t column, int64_t count, int64_t begin, int64_t end, Out* to) const {
    Wide sums[most_lanes];
    int64_t inner = shape.inner(), repeats = shape.inner_repeats(), together = 1;
    if (count == inner) together = std::max<int64_t>(1, std::min(repeats, few_lanes / inner));
    clear(sums, together * count);
    const Value* first = y + tiles.first(row) + column;
    for (int64_t copy = begin; copy < end;) {
      const Value* from = first + tiles.offset(copy);
      int64_t run = std::min(end - copy, repeats - copy % repeats);
      for (int64_t i = 0; i < run; i += together) add(sums, from + i * inner, std::min(together, run - i) * count);
      copy += run;
    }
    for (int64_t i = 1; i < together; ++i) add(sums, sums + i * count, count);
    for (int64_t k = 0; k < count; ++k) to[k] = finished(sums[k]);
  }
  void clear(Wide* sums, int64_t count) const { std::fill(sums, sums + count, reducer.start()); }
  template <class Term>
  void add(Wide* sums, const Term* terms, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) sums[k] = reducer.add(sums[k], terms[k]);
  }
  Out finished(Wide sum) const {
    if constexpr (last)
      return reducer.finish(sum);
    else
      return sum;
  }

  // x [batches, chunks, elements]
  void run(const Executor& executor, int64_t chunks, Out* x) const {
    constexpr int64_t task_steps = 1 << 15;
    int64_t inner = shape.inner(), batch_rows = shape.elements() / inner;
    // Neighboring rows of x whose copies are neighbors too.
    int64_t slice = tiles.outer ? shape.size[tiles.outer - 1] : shape.batches;
    int64_t slices = shape.x_elements() / inner / slice;
    int64_t rows = is_short ? most_lanes / tiles.y_inner.value : 1, columns = is_short ? inner : most_lanes;
    int64_t row_parts = ceil_div(slice, rows), column_parts = ceil_div(inner, columns),
            chunk = ceil_div(copies, chunks);
    int64_t items = slices * row_parts * column_parts * chunks;
    int64_t cost = chunk * (is_short ? rows * tiles.y_inner.value : std::min(inner, columns)) + 32;
    int64_t range = task_steps / cost + 1;
    parallel_for(executor, ceil_div(items, range), range * cost, [&](int64_t task) {
      for (int64_t item = task * range; item < std::min(items, (task + 1) * range); ++item) {
        int64_t part = item % chunks, column = item / chunks % column_parts * columns;
        int64_t in_slice = item / chunks / column_parts % row_parts * rows;
        int64_t row = item / chunks / column_parts / row_parts * slice + in_slice;
        int64_t position = chunks == 1 ? row : (row / batch_rows * chunks + part) * batch_rows + row % batch_rows;
        int64_t begin = std::min(copies, part * chunk), end = std::min(copies, begin + chunk);
        Out* to = x + position * inner + column;
        if (is_short)
          reduce_short(row, std::min(rows, slice - in_slice), begin, end, to);
        else
          reduce_long(row, column, std::min(columns, inner - column), begin, end, to);
      }
    });
  }
};

}  // namespace internal

template <class T>
Status copy_elements(const Executor& executor, const TileShape& shape, const T* x, T* y) {
  if (shape.y_elements() == 0) return {};
  constexpr int64_t task_elements = (1 << 17) / sizeof(T), short_elements = 32;
  Tiles<int64_t> tiles(shape);
  int64_t inner = shape.inner(), columns = tiles.y_inner.value, rows = shape.y_elements() / columns;
  int64_t parts = ceil_div(columns, task_elements), range = task_elements / columns + 1;
  if (parts > 1) range = 1;
  int64_t slice = tiles.outer ? shape.size[tiles.outer - 1] : shape.batches;
  int64_t times = tiles.outer ? shape.repeats[tiles.outer - 1] : 1;
  int64_t width = ceil_div(columns, parts), cost = std::min(columns, width) * range * sizeof(T) / 4;
  parallel_for(executor, ceil_div(rows, range) * parts, cost, [&](int64_t task) {
    int64_t first = task / parts * range, begin = task % parts * width;
    int64_t last = std::min(rows, first + range), end = std::min(columns, begin + width);
    for (int64_t row = first; row < last;) {
      // The rest of a slice: rows of x that are neighbors, each with its copies along one axis.
      int64_t position = row % (slice * times), i = position / times, copy = position % times;
      auto start = tiles.rows(row - position);
      for (; i < slice && row < last; ++i, copy = 0)
        for (; copy < times && row < last; ++copy, ++row) {
          T* to = y + start.y + (i + copy * slice) * columns;
          if (columns <= short_elements)
            internal::copy_short_row(x + start.x + i * inner, inner, to, shape.inner_repeats());
          else
            internal::copy_row(x + start.x + i * inner, inner, to, begin, end);
        }
    }
  });
  return {};
}

template <class Reducer>
Status reduce_copies(const Executor& executor, const Reducer& reducer, const TileShape& shape,
                     const typename Reducer::Element* y, typename Reducer::Element* x) {
  using Element = typename Reducer::Element;
  using Wide = typename Reducer::Wide;
  if (shape.x_elements() == 0) return {};
  if (shape.copies() == 0) {
    std::fill(x, x + shape.x_elements(), reducer.finish(reducer.start()));
    return {};
  }
  internal::CopyReduction<Reducer, Element, true> whole{reducer, shape, y};
  int64_t chunks = whole.chunks();
  if (chunks == 1) {
    whole.run(executor, 1, x);
    return {};
  }
  std::vector<Wide> parts(size_t(shape.x_elements() * chunks));
  internal::CopyReduction<Reducer, Element, false>{reducer, shape, y}.run(executor, chunks, parts.data());
  TileShape of_parts{shape.batches, 1, {shape.elements()}, {chunks}};
  internal::CopyReduction<Reducer, Wide, true>{reducer, of_parts, parts.data()}.run(executor, 1, x);
  return {};
}

}  // namespace baracuda
