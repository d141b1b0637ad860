// The index_map pattern on CPU threads: y is written row by row, a row being the last axis, or two axes at once where
// no term is folded along them.
#pragma once

#include <vector>

#include "index_map.h"
#include "square_cpu.h"

namespace baracuda {

// Positions that follow each other by `step`, from q on, as long as what they stand for does too: by `slope` times the
// step, from `first` on. With `first` below 0 they are the fill value.
struct FoldRun {
  int64_t first, slope, count;
};

inline FoldRun fold_run(Fold fold, int64_t q, int64_t n, int64_t step, int64_t most) {
  int64_t first = folded(fold, q, n);
  // How many positions there are up to the end of an interval that lies `rest` ahead.
  auto until = [&](int64_t rest, int64_t step) { return std::min(most, rest / step + 1); };
  if (step == 0) return {first, 0, most};
  int64_t ahead = step < 0 ? -step : step;
  if (q >= 0 && q < n) return {first, 1, until(step > 0 ? n - 1 - q : q, ahead)};
  // The next position inside, or none.
  bool is_leaving = (q < 0) == (step < 0);
  if (fold == Fold::constant || fold == Fold::clamp)
    return {first, 0, is_leaving || n == 0 ? most : std::min(most, ceil_div(q < 0 ? -q : q - (n - 1), ahead))};
  if (fold == Fold::wrap || n == 1)
    return n == 1 ? FoldRun{0, 0, most} : FoldRun{first, 1, until(step > 0 ? n - 1 - first : first, ahead)};
  bool is_symmetric = fold == Fold::symmetric;
  int64_t period = is_symmetric ? 2 * n : 2 * (n - 1), rest = ((q % period) + period) % period;
  bool is_ascending = rest < n;
  if (!is_symmetric) {  // at an end, an element is of both directions
    if (rest == n - 1) is_ascending = step < 0;
    if (rest == 0 && step < 0) is_ascending = false;
  }
  bool goes_up = is_ascending == (step > 0);
  return {first, is_ascending ? 1 : -1, until(goes_up ? n - 1 - first : first, ahead)};
}

namespace internal {

template <class Element>
void map_run(const Element* x, int64_t step, Element* y, int64_t count) {
  if (step == 1)
    memcpy(y, x, size_t(count) * sizeof(Element));
  else if (step == 0)
    std::fill_n(y, count, *x);
  else
    for (int64_t i = 0; i < count; ++i) y[i] = x[i * step];
}

// `columns` elements of each of `rows` rows of y.
template <class Element>
void map_plane(const Element* x, int64_t x_row, int64_t x_column, Element* y, int64_t y_row, int64_t rows,
               int64_t columns) {
  constexpr int64_t few = 16;
  if (x_column == 0 || x_column == 1 || x_column == -1) {
    if (columns >= few || rows < columns) {
      for (int64_t i = 0; i < rows; ++i) map_run(x + i * x_row, x_column, y + i * y_row, columns);
      return;
    }
  }
  if (columns < few) {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) y[i * y_row + j] = x[i * x_row + j * x_column];
    return;
  }
  // In blocks, so that what is read of a cache line is read while that is there. What lies in columns of x is turned
  // next to y, whose rows may be as far apart as cache lines that displace each other.
  constexpr int64_t block = std::max<int64_t>(8, std::min<int64_t>(64, 256 / sizeof(Element)));
  Element turned[block * block];
  for (int64_t left = 0; left < columns; left += block)
    for (int64_t top = 0; top < rows; top += block) {
      int64_t height = std::min(block, rows - top), width = std::min(block, columns - left);
      const Element* from = x + top * x_row + left * x_column;
      Element* to = y + top * y_row + left;
      if (x_row == 1) {
        const Element* of_x[block];
        for (int64_t j = 0; j < width; ++j) of_x[j] = from + j * x_column;
        turn(of_x, width, 0, height, turned, block);
        for (int64_t i = 0; i < height; ++i)
          memcpy(to + i * y_row, turned + i * block, size_t(width) * sizeof(Element));
        continue;
      }
      for (int64_t i = 0; i < height; ++i) map_run(from + i * x_row, x_column, to + i * y_row, width);
    }
}

// Elements of a row that come from elements of x `step` apart, or are the fill value.
struct MapRun {
  int64_t begin, count, position, step;
  bool is_filled;
};

template <class Element>
class MapRows {
  const IndexMap& map_;

 public:
  // A row of y: where its elements come from, of what strides say, and of the terms.
  struct Row {
    int64_t index[map_axes], position, q[map_terms];
  };

  MapRows(const IndexMap& map, Element fill, const Element* x) : map_(map), fill_(fill), x_(x) {
    if (has_planes) return;
    bool are_alike = true;
    for (int t = 0; t < map.terms; ++t)
      for (int k = 0; k < last; ++k) are_alike = are_alike && (map.step[t][last] == 0 || map.step[t][k] == 0);
    if (!are_alike) return;
    Row first = at(0);
    for_runs(first, 0, map.size[last], [&](const MapRun& run) {
      if (runs_.size() <= most_runs) runs_.push_back(run);
    });
    if (runs_.size() > most_runs) runs_.clear();
  }

  const int last = map_.last();
  const bool has_planes = map_.axes > 1 && map_.is_direct(last) && map_.is_direct(last - 1);

  Row at(int64_t row) const {
    Row r;
    r.position = map_.base;
    for (int t = 0; t < map_.terms; ++t) r.q[t] = map_.term[t].offset;
    for (int k = last - 1; k >= 0; --k) {
      r.index[k] = row % map_.size[k];
      row /= map_.size[k];
      move(r, k, r.index[k]);
    }
    return r;
  }
  void next(Row& r) const {
    for (int k = last - 1; k >= 0; --k) {
      move(r, k, 1);
      if (++r.index[k] < map_.size[k]) return;
      move(r, k, -r.index[k]);
      r.index[k] = 0;
    }
  }
  // Elements [begin, end) of `rows` neighboring rows that differ along the last axis but one.
  void plane(const Row& r, int64_t rows, int64_t begin, int64_t end, Element* y) const {
    int64_t columns = map_.size[last], position = 0;
    if (is_fill(r, position)) {
      for (int64_t i = 0; i < rows; ++i) std::fill(y + i * columns + begin, y + i * columns + end, fill_);
      return;
    }
    map_plane(x_ + r.position + position + begin * map_.stride[last], map_.stride[last - 1], map_.stride[last],
              y + begin, columns, rows, end - begin);
  }
  // Elements [begin, end) of a row along which terms are folded.
  void row(const Row& r, int64_t begin, int64_t end, Element* y) const {
    int64_t position = r.position;
    if (is_fill(r, position)) return void(std::fill(y + begin, y + end, fill_));
    auto put = [&](const MapRun& run) {
      if (run.is_filled)
        std::fill_n(y + run.begin, run.count, fill_);
      else
        map_run(x_ + position + run.position, run.step, y + run.begin, run.count);
    };
    if (runs_.empty() || begin > 0 || end < map_.size[last]) return for_runs(r, begin, end, put);
    for (const MapRun& run : runs_) put(run);
  }

 private:
  static constexpr size_t most_runs = 64;

  Element fill_;
  const Element* x_;
  std::vector<MapRun> runs_;  // of each whole row, if they are the same for all

  void move(Row& r, int k, int64_t elements) const {
    r.position += elements * map_.stride[k];
    for (int t = 0; t < map_.terms; ++t) r.q[t] += elements * map_.step[t][k];
  }
  // Whether the terms that are the same for all elements of a row say so; if not, they move its position.
  bool is_fill(const Row& r, int64_t& position) const {
    for (int t = 0; t < map_.terms; ++t) {
      if (map_.step[t][last] != 0) continue;
      int64_t at = folded(map_.term[t].fold, r.q[t], map_.term[t].size);
      if (at < 0) return true;
      position += at * map_.term[t].stride;
    }
    return false;
  }
  // Runs of a row's elements [begin, end) in which no term turns.
  template <class Each>
  void for_runs(const Row& r, int64_t begin, int64_t end, const Each& each) const {
    for (int64_t done = begin, count = 0; done < end; done += count) {
      MapRun made{done, end - done, done * map_.stride[last], map_.stride[last], false};
      for (int t = 0; t < map_.terms; ++t) {
        const IndexTerm& term = map_.term[t];
        int64_t ahead = map_.step[t][last];
        if (ahead == 0) continue;
        FoldRun run = fold_run(term.fold, r.q[t] + done * ahead, term.size, ahead, made.count);
        made.count = std::min(made.count, run.count);
        made.is_filled |= run.first < 0;
        made.position += run.first * term.stride, made.step += run.slope * ahead * term.stride;
      }
      count = made.count;
      each(made);
    }
  }
};

}  // namespace internal

// `map` has one axis at least, and no empty one.
template <class Element>
Status map_elements(const Executor& executor, const IndexMap& map, Element fill, const Element* x, Element* y) {
  constexpr int64_t task_elements = (1 << 17) / sizeof(Element), block_rows = 16;
  const internal::MapRows<Element> rows(map, fill, x);
  int64_t columns = map.size[rows.last], count = map.elements() / columns;
  int64_t line = rows.has_planes ? map.size[rows.last - 1] : 1;
  // Rows that are too long for a task are cut, but not so that few of them come together.
  int64_t width = columns <= task_elements ? columns : std::max(task_elements / std::min(line, block_rows), block_rows);
  int64_t parts = ceil_div(columns, width), range = task_elements / width + (parts == 1);
  int64_t cost = range * (width + 16) * int64_t(sizeof(Element)) / 4;
  parallel_for(executor, ceil_div(count, range) * parts, cost, [&](int64_t task) {
    int64_t row = task / parts * range, end = std::min(count, row + range);
    int64_t first = task % parts * width, past = std::min(columns, first + width);
    if (!rows.has_planes) {
      auto at = rows.at(row);
      for (; row < end; ++row, rows.next(at)) rows.row(at, first, past, y + row * columns);
    }
    while (row < end) {
      int64_t some = std::min(line - row % line, end - row);
      rows.plane(rows.at(row), some, first, past, y + row * columns);
      row += some;
    }
  });
  return {};
}

}  // namespace baracuda
