// The move pattern on CPU threads: y is written row by row, a row being the last axis, or two axes at once where no
// term is folded along them.
#pragma once

#include "move.h"
#include "turn_cpu.h"

namespace baracuda {

// Places that follow each other by `step`, from q on, as long as what they stand for does too: by `slope` times the
// step, from `first` on. With `first` below 0 they are the fill value.
struct FoldRun {
  int64_t first, slope, count;
};

inline FoldRun fold_run(Fold fold, int64_t q, int64_t n, int64_t step, int64_t most) {
  int64_t first = folded(fold, q, n);
  // How many places there are up to the end of an interval that lies `rest` ahead.
  auto until = [&](int64_t rest, int64_t step) { return std::min(most, rest / step + 1); };
  if (step == 0) return {first, 0, most};
  int64_t ahead = step < 0 ? -step : step;
  if (q >= 0 && q < n) return {first, 1, until(step > 0 ? n - 1 - q : q, ahead)};
  // The next place inside, or none.
  bool is_leaving = (q < 0) == (step < 0);
  if (fold == Fold::constant || fold == Fold::clamp)
    return {first, 0, is_leaving || n == 0 ? most : std::min(most, ceil_div(q < 0 ? -q : q - (n - 1), ahead))};
  if (fold == Fold::wrap || n == 1)
    return n == 1 ? FoldRun{0, 0, most} : FoldRun{first, 1, until(step > 0 ? n - 1 - first : first, ahead)};
  int64_t period = 2 * (n - 1), rest = ((q % period) + period) % period;
  bool is_rising = rest < n - 1 || (rest == n - 1 && step < 0);
  if (rest == 0 && step < 0) is_rising = false;
  bool goes_up = is_rising == (step > 0);
  return {first, is_rising ? 1 : -1, until(goes_up ? n - 1 - first : first, ahead)};
}

namespace internal {

template <class Cell>
void move_run(const Cell* x, int64_t step, Cell* y, int64_t count) {
  if (step == 1)
    memcpy(y, x, size_t(count) * sizeof(Cell));
  else if (step == 0)
    std::fill_n(y, count, *x);
  else
    for (int64_t i = 0; i < count; ++i) y[i] = x[i * step];
}

// `columns` cells of each of `rows` rows of y.
template <class Cell>
void move_plane(const Cell* x, int64_t x_row, int64_t x_column, Cell* y, int64_t y_row, int64_t rows, int64_t columns) {
  constexpr int64_t few = 16;
  if (x_column == 0 || x_column == 1 || x_column == -1) {
    if (columns >= few || rows < columns) {
      for (int64_t i = 0; i < rows; ++i) move_run(x + i * x_row, x_column, y + i * y_row, columns);
      return;
    }
  }
  if (columns < few) {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) y[i * y_row + j] = x[i * x_row + j * x_column];
    return;
  }
  // In blocks, so that what is read of a cache line is read while that is there. What lies in columns of x is turned
  // beside y, whose rows may be as far apart as cache lines that displace each other.
  constexpr int64_t block = std::max<int64_t>(8, std::min<int64_t>(64, 256 / sizeof(Cell)));
  Cell turned[block * block];
  for (int64_t left = 0; left < columns; left += block)
    for (int64_t top = 0; top < rows; top += block) {
      int64_t height = std::min(block, rows - top), width = std::min(block, columns - left);
      const Cell* from = x + top * x_row + left * x_column;
      Cell* to = y + top * y_row + left;
      if (x_row == 1) {
        const Cell* of_x[block];
        for (int64_t j = 0; j < width; ++j) of_x[j] = from + j * x_column;
        turn(of_x, width, height, turned, block);
        for (int64_t i = 0; i < height; ++i) memcpy(to + i * y_row, turned + i * block, size_t(width) * sizeof(Cell));
        continue;
      }
      for (int64_t i = 0; i < height; ++i) move_run(from + i * x_row, x_column, to + i * y_row, width);
    }
}

template <class Cell>
struct MoveRows {
  const MoveMap& map;
  Cell fill;
  const Cell* x;
  int last = map.last();
  bool has_planes = map.axes > 1 && map.is_direct(last) && map.is_direct(last - 1);

  // The places of row `row`: of what strides say, and of the terms.
  int64_t start(int64_t row, int64_t* q) const {
    int64_t place = map.base;
    for (int t = 0; t < map.terms; ++t) q[t] = map.term[t].offset;
    for (int k = last - 1; k >= 0; --k) {
      int64_t i = row % map.size[k];
      row /= map.size[k];
      place += i * map.stride[k];
      for (int t = 0; t < map.terms; ++t) q[t] += i * map.step[t][k];
    }
    return place;
  }
  // Cells [begin, end) of `rows` neighbouring rows that differ along the last axis but one.
  void plane(int64_t row, int64_t rows, int64_t begin, int64_t end, Cell* y) const {
    int64_t q[move_terms], place = start(row, q) + begin * map.stride[last], columns = map.size[last];
    for (int t = 0; t < map.terms; ++t) {
      const MoveTerm& term = map.term[t];
      int64_t at = folded(term.fold, q[t], term.size);
      if (at < 0) {
        for (int64_t i = 0; i < rows; ++i) std::fill(y + i * columns + begin, y + i * columns + end, fill);
        return;
      }
      place += at * term.stride;
    }
    move_plane(x + place, map.stride[last - 1], map.stride[last], y + begin, columns, rows, end - begin);
  }
  // Cells [begin, end) of a row along which terms are folded: runs in which none of them turns.
  void row(int64_t row, int64_t begin, int64_t end, Cell* y) const {
    int64_t q[move_terms], from = start(row, q);
    for (int64_t done = begin, count = 0; done < end; done += count) {
      int64_t place = from + done * map.stride[last], step = map.stride[last];
      bool is_filled = false;
      count = end - done;
      for (int t = 0; t < map.terms; ++t) {
        const MoveTerm& term = map.term[t];
        int64_t ahead = map.step[t][last];
        FoldRun run = fold_run(term.fold, q[t] + done * ahead, term.size, ahead, count);
        count = std::min(count, run.count);
        is_filled |= run.first < 0;
        place += run.first * term.stride, step += run.slope * ahead * term.stride;
      }
      if (is_filled)
        std::fill_n(y + done, count, fill);
      else
        move_run(x + place, step, y + done, count);
    }
  }
};

}  // namespace internal

// `map` has one axis at least, and no empty one.
template <class Cell>
Status move_cells(const Executor& executor, const MoveMap& map, Cell fill, const Cell* x, Cell* y) {
  constexpr int64_t task_cells = (1 << 17) / sizeof(Cell), block_rows = 16;
  internal::MoveRows<Cell> rows{map, fill, x};
  int64_t columns = map.size[rows.last], count = map.cells() / columns;
  int64_t line = rows.has_planes ? map.size[rows.last - 1] : 1;
  // Rows that are too long for a task are cut, but not so that few of them come together.
  int64_t width = columns <= task_cells ? columns : std::max(task_cells / std::min(line, block_rows), block_rows);
  int64_t parts = ceil_div(columns, width), stretch = task_cells / width + (parts == 1);
  int64_t cost = stretch * (width + 16) * int64_t(sizeof(Cell)) / 4;
  parallel_for(executor, ceil_div(count, stretch) * parts, cost, [&](int64_t task) {
    int64_t row = task / parts * stretch, end = std::min(count, row + stretch);
    int64_t first = task % parts * width, past = std::min(columns, first + width);
    while (row < end) {
      int64_t some = std::min(line - row % line, end - row);
      if (rows.has_planes)
        rows.plane(row, some, first, past, y + row * columns);
      else
        rows.row(row, first, past, y + row * columns);
      row += some;
    }
  });
  return {};
}

}  // namespace baracuda
