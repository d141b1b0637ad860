// The reduce pattern on CPU threads.
//
// Cells are read in lanes, which are neighbours: of a row, whose lanes are put together at its end, or in columns. Long
// lines are cut into parts, whose states are put together pairwise.
#pragma once

#include <vector>

#include "../kernels/number.h"
#include "reduce.h"
#include "square_cpu.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int reduce_lanes = 32, reduce_ahead = 8;

// Cells that follow each other in lanes, `step` apart.
template <class T>
struct CellsApart {
  const T* from;
  int64_t step;
  BARACUDA_HD const T& operator()(int64_t i, int64_t k) const { return from[i * step + k]; }
};

template <class Reducer>
class LineReduction {
 public:
  using T = typename Reducer::Element;
  template <int V>
  using State = typename Reducer::template State<V>;

  LineReduction(const Reducer& reducer, const ReduceShape& shape, const T* x)
      : reducer_(reducer), shape_(shape), x_(x + shape.first) {}

  Status run(const Executor& executor) const {
    if (shape_.results() == 0) return {};
    return shape_.columns == 1 ? run_rows(executor) : run_columns(executor);
  }

 private:
  static constexpr int V = reduce_lanes;
  static constexpr int64_t part_cells = 1 << 15, task_cells = 1 << 14;

  const Reducer reducer_;
  const ReduceShape& shape_;
  const T* x_;

  // `rows` more cells of each lane.
  template <int lanes>
  [[gnu::noinline]] static void push(const Reducer reducer, State<lanes>& to, const T* from, int64_t rows,
                                     int64_t step) {
    State<lanes> s = to;  // which no load aliases
    for (; rows >= reduce_ahead; rows -= reduce_ahead, from += reduce_ahead * step)
      reducer.template push<lanes, reduce_ahead>(s, CellsApart<T>{from, step});
    for (; rows > 0; --rows, from += step) reducer.template push<lanes, 1>(s, CellsApart<T>{from, step});
    to = s;
  }
  State<1> none() const {
    State<1> s;
    reducer_.none(s);
    return s;
  }
  // States [first, first + count), put together pairwise.
  template <class Of>
  State<1> joined(const Of& of, int64_t first, int64_t count) const {
    if (count == 0) return none();
    if (count == 1) return of(first);
    State<1> s = joined(of, first, count / 2);
    reducer_.merge(s, joined(of, first + count / 2, count - count / 2));
    return s;
  }
  // The state of fewer neighbouring cells than lanes, and of what is in these: half of the lanes are put to the others,
  // and take as many cells, if there are, until one lane is left.
  template <int lanes>
  State<1> of_lanes(const State<lanes>& s, const T* from, int64_t count) const {
    if constexpr (lanes == 1) {
      return s;
    } else {
      auto half = s.template lanes<lanes / 2>(0);
      reducer_.merge(half, s.template lanes<lanes / 2>(lanes / 2));
      if (count >= lanes / 2) {
        reducer_.template push<lanes / 2, 1>(half, CellsApart<T>{from, 1});
        from += lanes / 2, count -= lanes / 2;
      }
      return of_lanes(half, from, count);
    }
  }
  State<1> of_neighbours(const T* from, int64_t count) const {
    State<V> s;
    reducer_.none(s);
    if (count >= reduce_ahead * V)
      push<V>(reducer_, s, from, count / V, V);
    else
      for (int64_t row = 0; row < count / V; ++row) reducer_.template push<V, 1>(s, CellsApart<T>{from + row * V, 1});
    return of_lanes(s, from + count / V * V, count % V);
  }
  // Cells [begin, end) of a line, in which `each` run of equal steps is pushed: each(first cell, count).
  template <class Each>
  void runs(int64_t begin, int64_t end, const Each& each) const {
    int64_t inner = shape_.reduced.inner();
    while (begin < end) {
      int64_t count = std::min(end - begin, inner - begin % inner);
      each(shape_.reduced.offset(begin), count);
      begin += count;
    }
  }
  State<1> of_row(const T* line, int64_t begin, int64_t end) const {
    State<1> s = none();
    int64_t step = shape_.reduced.inner_step();
    runs(begin, end, [&](int64_t first, int64_t count) {
      const T* from = line + first;
      if (step != 1) return push<1>(reducer_, s, from, count, step);
      reducer_.merge(s, of_neighbours(from, count));
    });
    return s;
  }

  // Short rows are turned, some at a time, so that lanes are rows: also few of them, for the bits that they have among
  // many.
  static constexpr int64_t short_cells = 4 * V;
  void of_short_rows(int64_t line, int64_t lines) const {
    T cells[short_cells * V];
    const T* rows[V];
    for (int64_t k = 0; k < V; ++k) rows[k] = x_ + shape_.kept.offset(line + (k < lines ? k : 0));
    turn(rows, V, 0, shape_.count, cells, V);
    State<V> s;
    reducer_.none(s);
    push<V>(reducer_, s, cells, shape_.count, V);
    if (lines == V) return reducer_.finish(s, line);
    for (int64_t k = 0; k < lines; ++k) reducer_.template finish<1>(s.lane(int(k)), line + k);
  }

  Status run_rows(const Executor& executor) const {
    if (shape_.count <= short_cells && shape_.reduced.rank <= 1 && shape_.reduced.inner_step() == 1) {
      int64_t lines = V * std::max<int64_t>(1, task_cells / V / std::max<int64_t>(1, shape_.count));
      parallel_for(executor, ceil_div(shape_.lines, lines), lines * shape_.count, [&](int64_t task) {
        int64_t end = std::min(shape_.lines, (task + 1) * lines);
        for (int64_t line = task * lines; line < end; line += V) of_short_rows(line, std::min<int64_t>(V, end - line));
      });
      return {};
    }
    int64_t parts = std::max<int64_t>(1, ceil_div(shape_.count, part_cells)), length = part_cells;
    int64_t stretch = parts > 1 ? 1 : std::max<int64_t>(1, task_cells / std::max<int64_t>(1, shape_.count));
    std::vector<State<1>> states(size_t(parts > 1 ? shape_.lines * parts : 0));
    parallel_for(executor, ceil_div(shape_.lines, stretch) * parts, std::min(shape_.count, length) * stretch,
                 [&](int64_t task) {
                   int64_t first = task / parts * stretch, begin = task % parts * length;
                   for (int64_t line = first; line < std::min(first + stretch, shape_.lines); ++line) {
                     State<1> s = of_row(x_ + shape_.kept.offset(line), begin, std::min(shape_.count, begin + length));
                     if (parts > 1)
                       states[size_t(task)] = s;
                     else
                       reducer_.template finish<1>(s, line);
                   }
                 });
    if (parts > 1) finish_parts(executor, states, parts, 1);
    return {};
  }

  // States [lines, parts, columns].
  void finish_parts(const Executor& executor, const std::vector<State<1>>& states, int64_t parts,
                    int64_t columns) const {
    constexpr int64_t stretch = 1 << 8;
    int64_t tasks = ceil_div(columns, stretch);
    parallel_for(executor, shape_.lines * tasks, parts * std::min(columns, stretch), [&](int64_t task) {
      int64_t line = task / tasks, end = std::min(columns, (task % tasks + 1) * stretch);
      for (int64_t column = task % tasks * stretch; column < end; ++column) {
        const State<1>* first = states.data() + line * parts * columns + column;
        reducer_.template finish<1>(joined([&](int64_t part) { return first[part * columns]; }, 0, parts),
                                    line * columns + column);
      }
    });
  }

  // A part of some columns of a line. States of lanes are kept beside each other, so that rows are read in their order.
  // The last lanes may be those of columns before again.
  Status run_columns(const Executor& executor) const {
    constexpr int64_t most_tiles = 32;
    int64_t columns = shape_.columns, step = shape_.reduced.inner_step();
    bool narrow = columns < V;
    int64_t wide = std::min(columns, most_tiles * V), blocks = ceil_div(columns, wide);
    int64_t length = std::max<int64_t>(64 * reduce_ahead, part_cells / wide);
    int64_t parts = std::max<int64_t>(1, ceil_div(shape_.count, length));
    int64_t cells = std::max<int64_t>(1, std::min(shape_.count, length)) * wide;
    int64_t stretch = parts > 1 || blocks > 1 ? 1 : std::max<int64_t>(1, task_cells / cells);
    std::vector<State<1>> states(size_t(parts > 1 ? shape_.results() * parts : 0));
    parallel_for(executor, ceil_div(shape_.lines, stretch) * parts * blocks, cells * stretch, [&](int64_t task) {
      int64_t block = task % blocks, part = task / blocks % parts, first_line = task / blocks / parts * stretch;
      int64_t column = block * wide, width = std::min(wide, columns - column);
      int64_t begin = part * length, end = std::min(shape_.count, begin + length);
      for (int64_t line = first_line; line < std::min(first_line + stretch, shape_.lines); ++line) {
        const T* from = x_ + shape_.kept.offset(line) + column;
        int64_t cell = line * columns + column;
        State<1>* to = parts > 1 ? states.data() + (line * parts + part) * columns + column : nullptr;
        if (narrow && step == columns)
          of_narrow_columns(from, begin, end, cell, to);
        else
          of_columns(from, begin, end, cell, width, to);
      }
    });
    if (parts > 1) finish_parts(executor, states, parts, columns);
    return {};
  }

  void put(const State<1>& s, int64_t cell, State<1>* to) const {
    if (to)
      *to = s;
    else
      reducer_.template finish<1>(s, cell);
  }

  void of_columns(const T* line, int64_t begin, int64_t end, int64_t cell, int64_t width, State<1>* to) const {
    if (width >= V) return of_tiles<V>(line, begin, end, cell, width, to);
    of_tiles<1>(line, begin, end, cell, width, to);
  }
  template <int lanes>
  void of_tiles(const T* line, int64_t begin, int64_t end, int64_t cell, int64_t width, State<1>* to) const {
    constexpr int most = 32;
    State<lanes> states[most];
    int tiles = int(ceil_div(width, lanes));
    auto column = [&](int tile) { return std::min<int64_t>(tile * lanes, width - lanes); };
    for (int tile = 0; tile < tiles; ++tile) reducer_.none(states[tile]);
    int64_t step = shape_.reduced.inner_step();
    runs(begin, end, [&](int64_t first, int64_t count) {
      for (int64_t row = 0; row < count; row += reduce_ahead)
        for (int tile = 0; tile < tiles; ++tile)
          push<lanes>(reducer_, states[tile], line + first + row * step + column(tile),
                      std::min<int64_t>(reduce_ahead, count - row), step);
    });
    for (int tile = 0; tile < tiles; ++tile) {
      if (!to && column(tile) == tile * lanes) {
        reducer_.finish(states[tile], cell + column(tile));
        continue;
      }
      for (int k = int(tile * lanes - column(tile)); k < lanes; ++k)
        put(states[tile].lane(k), cell + column(tile) + k, to ? to + column(tile) + k : nullptr);
    }
  }

  // Fewer columns than lanes, one row behind the other: lanes are as many whole rows as they can be, and what lies in
  // the lanes behind them is left out.
  void of_narrow_columns(const T* line, int64_t begin, int64_t end, int64_t cell, State<1>* to) const {
    int64_t columns = shape_.columns, rows = V / columns;
    State<V> lanes;
    State<1> ends[V];
    reducer_.none(lanes);
    for (int64_t c = 0; c < columns; ++c) ends[c] = none();
    runs(begin, end, [&](int64_t first, int64_t count) {
      const T* from = line + first;
      int64_t steps = count * columns < V ? 0 : (count * columns - V) / (rows * columns) + 1;
      push<V>(reducer_, lanes, from, steps, rows * columns);
      from += steps * rows * columns;
      for (int64_t c = 0; c < columns; ++c) push<1>(reducer_, ends[c], from + c, count - steps * rows, columns);
    });
    for (int64_t c = 0; c < columns; ++c) {
      State<1> s = joined([&](int64_t row) { return lanes.lane(int(row * columns + c)); }, 0, rows);
      reducer_.merge(s, ends[c]);
      put(s, cell + c, to ? to + c : nullptr);
    }
  }
};

// The functor is a copy, which no store may change.
template <class Spreader, class T>
void spread_row(const Spreader spreader, const typename Spreader::Part part, const T* x, T* dx, int64_t count) {
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) dx[i] = spreader.at(part, Spreader::reads ? x[i] : T{});
}
template <class Spreader, class T>
void spread_columns(const Spreader spreader, int64_t cell, const T* x, T* dx, int64_t count) {
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) dx[i] = spreader.at(spreader.part(cell + i), Spreader::reads ? x[i] : T{});
}

}  // namespace internal

template <class Reducer>
Status reduce_lines(const Executor& executor, const Reducer& reducer, const ReduceShape& shape,
                    const typename Reducer::Element* x) {
  return internal::LineReduction<Reducer>(reducer, shape, x).run(executor);
}

template <class Spreader>
Status spread_lines(const Executor& executor, const Spreader& spreader, const ReduceShape& shape,
                    const typename Spreader::Element* x, typename Spreader::Element* dx) {
  constexpr int64_t steps = 1 << 14;
  int64_t columns = shape.columns, inner = shape.reduced.inner(), apart = shape.reduced.inner_step();
  if (shape.results() * shape.count == 0) return {};
  int64_t length = std::max<int64_t>(1, std::min(shape.count, steps / columns)), parts = ceil_div(shape.count, length);
  int64_t stretch = parts > 1 ? 1 : std::max<int64_t>(1, steps / (length * columns));
  parallel_for(executor, ceil_div(shape.lines, stretch) * parts, stretch * length * columns, [&](int64_t task) {
    int64_t first = task / parts * stretch, begin = task % parts * length;
    for (int64_t line = first; line < std::min(first + stretch, shape.lines); ++line) {
      int64_t from = shape.first + shape.kept.offset(line), end = std::min(shape.count, begin + length);
      for (int64_t e = begin, run; e < end; e += run) {
        run = std::min(end - e, inner - e % inner);
        int64_t place = from + shape.reduced.offset(e);
        if (columns == 1) {
          internal::spread_row(spreader, spreader.part(line), x + place, dx + place, run);
          continue;
        }
        for (int64_t row = 0; row < run; ++row, place += apart)
          internal::spread_columns(spreader, line * columns, x + place, dx + place, columns);
      }
    }
  });
  return {};
}

}  // namespace baracuda
