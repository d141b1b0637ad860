// The reduce pattern on CPU threads.
//
// Elements are read in lanes, which are neighbors: of a row, whose lanes are put together at its end, or in columns.
// Long slices are cut into parts, whose states are put together pairwise.
#pragma once

#include <vector>

#include "../kernels/number.h"
#include "reduce.h"
#include "square_cpu.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int reduce_lanes = 32, reduce_ahead = 8;

// Elements that follow each other in lanes, `step` apart.
template <class T>
struct ElementsApart {
  const T* from;
  int64_t step;
  BARACUDA_HD const T& operator()(int64_t i, int64_t k) const { return from[i * step + k]; }
};

template <class Reducer>
class SliceReduction {
 public:
  using T = typename Reducer::Element;
  template <int V>
  using State = typename Reducer::template State<V>;

  SliceReduction(const Reducer& reducer, const ReduceShape& shape, const T* x)
      : reducer_(reducer), shape_(shape), x_(x + shape.first) {}

  Status run(const Executor& executor) const {
    if (shape_.results() == 0) return {};
    return shape_.columns == 1 ? run_rows(executor) : run_columns(executor);
  }

 private:
  static constexpr int V = reduce_lanes;
  static constexpr int64_t part_elements = 1 << 15, task_elements = 1 << 14;

  const Reducer reducer_;
  const ReduceShape& shape_;
  const T* x_;

  // `rows` more elements of each lane.
  template <int lanes>
  [[gnu::noinline]] static void push(const Reducer reducer, State<lanes>& to, const T* from, int64_t rows,
                                     int64_t step) {
    State<lanes> s = to;  // which no load aliases
    for (; rows >= reduce_ahead; rows -= reduce_ahead, from += reduce_ahead * step)
      reducer.template push<lanes, reduce_ahead>(s, ElementsApart<T>{from, step});
    for (; rows > 0; --rows, from += step) reducer.template push<lanes, 1>(s, ElementsApart<T>{from, step});
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
  // The state of fewer neighboring elements than lanes, and of what is in these: half of the lanes are put to the
  // others, and take as many elements, if there are, until one lane is left.
  template <int lanes>
  State<1> of_lanes(const State<lanes>& s, const T* from, int64_t count) const {
    if constexpr (lanes == 1) {
      return s;
    } else {
      auto half = s.template lanes<lanes / 2>(0);
      reducer_.merge(half, s.template lanes<lanes / 2>(lanes / 2));
      if (count >= lanes / 2) {
        reducer_.template push<lanes / 2, 1>(half, ElementsApart<T>{from, 1});
        from += lanes / 2, count -= lanes / 2;
      }
      return of_lanes(half, from, count);
    }
  }
  State<1> of_neighbors(const T* from, int64_t count) const {
    State<V> s;
    reducer_.none(s);
    if (count >= reduce_ahead * V)
      push<V>(reducer_, s, from, count / V, V);
    else
      for (int64_t row = 0; row < count / V; ++row)
        reducer_.template push<V, 1>(s, ElementsApart<T>{from + row * V, 1});
    return of_lanes(s, from + count / V * V, count % V);
  }
  // Elements [begin, end) of a slice, in which `each` run of equal steps is pushed: each(first element, count).
  template <class Each>
  void runs(int64_t begin, int64_t end, const Each& each) const {
    int64_t inner = shape_.reduced.inner();
    while (begin < end) {
      int64_t count = std::min(end - begin, inner - begin % inner);
      each(shape_.reduced.offset(begin), count);
      begin += count;
    }
  }
  State<1> of_row(const T* slice, int64_t begin, int64_t end) const {
    State<1> s = none();
    int64_t step = shape_.reduced.inner_step();
    runs(begin, end, [&](int64_t first, int64_t count) {
      const T* from = slice + first;
      if (step != 1) return push<1>(reducer_, s, from, count, step);
      reducer_.merge(s, of_neighbors(from, count));
    });
    return s;
  }

  // Short rows are turned, some at a time, so that lanes are rows: also few of them, for the bits that they have among
  // many.
  static constexpr int64_t short_elements = 4 * V;
  void of_short_rows(int64_t slice, int64_t slices) const {
    T elements[short_elements * V];
    const T* rows[V];
    for (int64_t k = 0; k < V; ++k) rows[k] = x_ + shape_.kept.offset(slice + (k < slices ? k : 0));
    turn(rows, V, 0, shape_.count, elements, V);
    State<V> s;
    reducer_.none(s);
    push<V>(reducer_, s, elements, shape_.count, V);
    if (slices == V) return reducer_.finish(s, slice);
    for (int64_t k = 0; k < slices; ++k) reducer_.template finish<1>(s.lane(int(k)), slice + k);
  }

  Status run_rows(const Executor& executor) const {
    if (shape_.count <= short_elements && shape_.reduced.rank <= 1 && shape_.reduced.inner_step() == 1) {
      int64_t slices = V * std::max<int64_t>(1, task_elements / V / std::max<int64_t>(1, shape_.count));
      parallel_for(executor, ceil_div(shape_.slices, slices), slices * shape_.count, [&](int64_t task) {
        int64_t end = std::min(shape_.slices, (task + 1) * slices);
        for (int64_t slice = task * slices; slice < end; slice += V)
          of_short_rows(slice, std::min<int64_t>(V, end - slice));
      });
      return {};
    }
    int64_t parts = std::max<int64_t>(1, ceil_div(shape_.count, part_elements)), length = part_elements;
    int64_t range = parts > 1 ? 1 : std::max<int64_t>(1, task_elements / std::max<int64_t>(1, shape_.count));
    std::vector<State<1>> states(size_t(parts > 1 ? shape_.slices * parts : 0));
    parallel_for(executor, ceil_div(shape_.slices, range) * parts, std::min(shape_.count, length) * range,
                 [&](int64_t task) {
                   int64_t first = task / parts * range, begin = task % parts * length;
                   for (int64_t slice = first; slice < std::min(first + range, shape_.slices); ++slice) {
                     State<1> s = of_row(x_ + shape_.kept.offset(slice), begin, std::min(shape_.count, begin + length));
                     if (parts > 1)
                       states[size_t(task)] = s;
                     else
                       reducer_.template finish<1>(s, slice);
                   }
                 });
    if (parts > 1) finish_parts(executor, states, parts, 1);
    return {};
  }

  // States [slices, parts, columns].
  void finish_parts(const Executor& executor, const std::vector<State<1>>& states, int64_t parts,
                    int64_t columns) const {
    constexpr int64_t range = 1 << 8;
    int64_t tasks = ceil_div(columns, range);
    parallel_for(executor, shape_.slices * tasks, parts * std::min(columns, range), [&](int64_t task) {
      int64_t slice = task / tasks, end = std::min(columns, (task % tasks + 1) * range);
      for (int64_t column = task % tasks * range; column < end; ++column) {
        const State<1>* first = states.data() + slice * parts * columns + column;
        reducer_.template finish<1>(joined([&](int64_t part) { return first[part * columns]; }, 0, parts),
                                    slice * columns + column);
      }
    });
  }

  // A part of some columns of a slice. States of lanes are kept next to each other, so that rows are read in their
  // order. The last lanes may be those of columns before again.
  Status run_columns(const Executor& executor) const {
    constexpr int64_t most_tiles = 32;
    int64_t columns = shape_.columns, step = shape_.reduced.inner_step();
    bool narrow = columns < V;
    int64_t wide = std::min(columns, most_tiles * V), blocks = ceil_div(columns, wide);
    int64_t length = std::max<int64_t>(64 * reduce_ahead, part_elements / wide);
    int64_t parts = std::max<int64_t>(1, ceil_div(shape_.count, length));
    int64_t elements = std::max<int64_t>(1, std::min(shape_.count, length)) * wide;
    int64_t range = parts > 1 || blocks > 1 ? 1 : std::max<int64_t>(1, task_elements / elements);
    std::vector<State<1>> states(size_t(parts > 1 ? shape_.results() * parts : 0));
    parallel_for(executor, ceil_div(shape_.slices, range) * parts * blocks, elements * range, [&](int64_t task) {
      int64_t block = task % blocks, part = task / blocks % parts, first_slice = task / blocks / parts * range;
      int64_t column = block * wide, width = std::min(wide, columns - column);
      int64_t begin = part * length, end = std::min(shape_.count, begin + length);
      for (int64_t slice = first_slice; slice < std::min(first_slice + range, shape_.slices); ++slice) {
        const T* from = x_ + shape_.kept.offset(slice) + column;
        int64_t element = slice * columns + column;
        State<1>* to = parts > 1 ? states.data() + (slice * parts + part) * columns + column : nullptr;
        if (narrow && step == columns)
          of_narrow_columns(from, begin, end, element, to);
        else
          of_columns(from, begin, end, element, width, to);
      }
    });
    if (parts > 1) finish_parts(executor, states, parts, columns);
    return {};
  }

  void put(const State<1>& s, int64_t element, State<1>* to) const {
    if (to)
      *to = s;
    else
      reducer_.template finish<1>(s, element);
  }

  void of_columns(const T* slice, int64_t begin, int64_t end, int64_t element, int64_t width, State<1>* to) const {
    if (width >= V) return of_tiles<V>(slice, begin, end, element, width, to);
    of_tiles<1>(slice, begin, end, element, width, to);
  }
  template <int lanes>
  void of_tiles(const T* slice, int64_t begin, int64_t end, int64_t element, int64_t width, State<1>* to) const {
    constexpr int most = 32;
    State<lanes> states[most];
    int tiles = int(ceil_div(width, lanes));
    auto column = [&](int tile) { return std::min<int64_t>(tile * lanes, width - lanes); };
    for (int tile = 0; tile < tiles; ++tile) reducer_.none(states[tile]);
    int64_t step = shape_.reduced.inner_step();
    runs(begin, end, [&](int64_t first, int64_t count) {
      for (int64_t row = 0; row < count; row += reduce_ahead)
        for (int tile = 0; tile < tiles; ++tile)
          push<lanes>(reducer_, states[tile], slice + first + row * step + column(tile),
                      std::min<int64_t>(reduce_ahead, count - row), step);
    });
    for (int tile = 0; tile < tiles; ++tile) {
      if (!to && column(tile) == tile * lanes) {
        reducer_.finish(states[tile], element + column(tile));
        continue;
      }
      for (int k = int(tile * lanes - column(tile)); k < lanes; ++k)
        put(states[tile].lane(k), element + column(tile) + k, to ? to + column(tile) + k : nullptr);
    }
  }

  // Fewer columns than lanes, one row after the other: lanes are as many whole rows as they can be, and what lies in
  // the lanes after them is left out.
  void of_narrow_columns(const T* slice, int64_t begin, int64_t end, int64_t element, State<1>* to) const {
    int64_t columns = shape_.columns, rows = V / columns;
    State<V> lanes;
    State<1> ends[V];
    reducer_.none(lanes);
    for (int64_t c = 0; c < columns; ++c) ends[c] = none();
    runs(begin, end, [&](int64_t first, int64_t count) {
      const T* from = slice + first;
      int64_t steps = count * columns < V ? 0 : (count * columns - V) / (rows * columns) + 1;
      push<V>(reducer_, lanes, from, steps, rows * columns);
      from += steps * rows * columns;
      for (int64_t c = 0; c < columns; ++c) push<1>(reducer_, ends[c], from + c, count - steps * rows, columns);
    });
    for (int64_t c = 0; c < columns; ++c) {
      State<1> s = joined([&](int64_t row) { return lanes.lane(int(row * columns + c)); }, 0, rows);
      reducer_.merge(s, ends[c]);
      put(s, element + c, to ? to + c : nullptr);
    }
  }
};

// The functor is a copy, which no store may change.
template <class Broadcaster, class T>
void broadcast_row(const Broadcaster broadcaster, const typename Broadcaster::Part part, const T* x, T* dx,
                   int64_t count) {
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) dx[i] = broadcaster.at(part, Broadcaster::reads ? x[i] : T{});
}
template <class Broadcaster, class T>
void broadcast_columns(const Broadcaster broadcaster, int64_t element, const T* x, T* dx, int64_t count) {
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i)
    dx[i] = broadcaster.at(broadcaster.part(element + i), Broadcaster::reads ? x[i] : T{});
}

}  // namespace internal

template <class Reducer>
Status reduce_slices(const Executor& executor, const Reducer& reducer, const ReduceShape& shape,
                     const typename Reducer::Element* x) {
  return internal::SliceReduction<Reducer>(reducer, shape, x).run(executor);
}

template <class Broadcaster>
Status broadcast_slices(const Executor& executor, const Broadcaster& broadcaster, const ReduceShape& shape,
                        const typename Broadcaster::Element* x, typename Broadcaster::Element* dx) {
  constexpr int64_t steps = 1 << 14;
  int64_t columns = shape.columns, inner = shape.reduced.inner(), apart = shape.reduced.inner_step();
  if (shape.results() * shape.count == 0) return {};
  int64_t length = std::max<int64_t>(1, std::min(shape.count, steps / columns)), parts = ceil_div(shape.count, length);
  int64_t range = parts > 1 ? 1 : std::max<int64_t>(1, steps / (length * columns));
  parallel_for(executor, ceil_div(shape.slices, range) * parts, range * length * columns, [&](int64_t task) {
    int64_t first = task / parts * range, begin = task % parts * length;
    for (int64_t slice = first; slice < std::min(first + range, shape.slices); ++slice) {
      int64_t from = shape.first + shape.kept.offset(slice), end = std::min(shape.count, begin + length);
      for (int64_t e = begin, run; e < end; e += run) {
        run = std::min(end - e, inner - e % inner);
        int64_t position = from + shape.reduced.offset(e);
        if (columns == 1) {
          internal::broadcast_row(broadcaster, broadcaster.part(slice), x + position, dx + position, run);
          continue;
        }
        for (int64_t row = 0; row < run; ++row, position += apart)
          internal::broadcast_columns(broadcaster, slice * columns, x + position, dx + position, columns);
      }
    }
  });
  return {};
}

}  // namespace baracuda
