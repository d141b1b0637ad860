// The scan pattern on CPU threads. A worker has many slices at once, in the lanes of vectors: neighboring columns, or
// rows, whose elements are transposed. A slice that is alone is cut into ranges, which are scanned side by side. Where
// slices are few and long, they are cut into chunks, whose totals are formed first.
#pragma once

#include <algorithm>
#include <vector>

#include "scan_states_cpu.h"
#include "scan_tile_cpu.h"

namespace baracuda {
namespace internal {

// Neighboring columns of one row of blocks, first ... first + lanes - 1: V at a time, of which the last share some
// with those before them.
template <class Functor>
struct ScanColumnStrip {
  using State = typename Functor::State;
  static constexpr int V = scan_lanes<Functor>, most = 16 * V, groups = most / V + 1;
  const ScanShape& shape;
  int64_t row, first, lanes;

  static int64_t strips(const ScanShape& shape) { return shape.outer * each(shape); }
  ScanColumnStrip(const ScanShape& shape, int64_t strip)
      : shape(shape), row(strip / each(shape)), first(strip % each(shape) * most) {
    lanes = first / most + 1 < each(shape) ? most : shape.inner - first;
  }
  // Positions [from, to), from `state` on, which is then what comes after them.
  void run(const Functor functor, int64_t from, int64_t to, bool writes, State* state) const {
    States<State, V> now[groups];
    int many = int(ceil_div(lanes, V));
    auto column = [&](int g) { return std::min(int64_t(g) * V, lanes - V); };
    for (int g = 0; g < many; ++g)
      for (int k = 0; k < V; ++k) now[g].set(k, state[column(g) + k]);
    for (int64_t position = from; position < to; ++position)
      for (int g = 0; g < many; ++g) {
        auto at = shape.columns<V>(row, first + column(g), position);
        scan_step<V>(functor, at, shape.exclusive, writes, now[g]);
      }
    for (int g = 0; g < many; ++g)
      for (int k = 0; k < V; ++k) state[column(g) + k] = now[g][k];
  }

 private:
  // The last strip has the columns after the last whole vector too.
  static int64_t each(const ScanShape& shape) { return ceil_div(shape.inner / V, 16); }
};

// Slices of one column, `pitch` elements apart; or ranges of one slice, whose positions are `apart`.
template <int V, class Functor>
void scan_tiles(const Functor functor, const ScanShape& shape, int64_t row, int64_t column, int64_t from, int64_t to,
                int64_t apart, bool writes, typename Functor::State* state) {
  constexpr int P = V;
  int64_t step = shape.reverse ? -shape.inner : shape.inner, pitch = apart ? apart * step : shape.count * shape.inner;
  States<typename Functor::State, V> now;
  for (int k = 0; k < V; ++k) now.set(k, state[k]);
  auto run = [&](auto positions) {
    constexpr int P = decltype(positions)::value;
    for (; from + P <= to; from += P) {
      int64_t element = (row * shape.count + shape.index(from)) * shape.inner + column;
      ScanTile<V, P> at(element, step, pitch, from, apart, shape.count);
      scan_step<V>(functor, at, shape.exclusive, writes, now);
    }
  };
  if (P > 1 && shape.inner == 1) run(std::integral_constant<int, P>());
  run(std::integral_constant<int, 1>());
  for (int k = 0; k < V; ++k) state[k] = now[k];
}

// Some rows of one column.
template <class Functor>
struct ScanRowStrip {
  static constexpr int V = scan_lanes<Functor>, most = V;
  const ScanShape& shape;
  int64_t row, column, lanes = V;

  static int64_t strips(const ScanShape& shape) { return shape.outer / V * shape.inner; }
  ScanRowStrip(const ScanShape& shape, int64_t strip)
      : shape(shape), row(strip / shape.inner * V), column(strip % shape.inner) {}
  void run(const Functor& functor, int64_t from, int64_t to, bool writes, typename Functor::State* state) const {
    scan_tiles<V>(functor, shape, row, column, from, to, 0, writes, state);
  }
};

template <class Strip, class Functor>
void scan_strips(const Executor& executor, const Functor& functor, const ScanShape& shape) {
  using State = typename Functor::State;
  constexpr int64_t many = 64, chunk = 1 << 14;
  constexpr size_t most = size_t(Strip::most) + Strip::V;
  int64_t strips = Strip::strips(shape), chunks = strips >= many ? 1 : ceil_div(shape.count, chunk);
  int64_t length = chunks == 1 ? shape.count : chunk;
  std::vector<State> before(chunks == 1 ? 0 : size_t(strips * chunks) * most, Functor::none());
  auto each = [&](bool writes, int64_t last) {
    parallel_for(executor, strips * last, length * Strip::most, [&](int64_t task) {
      int64_t strip = task / last, chunk = task % last, from = chunk * length;
      State state[most];
      std::fill_n(state, most, Functor::none());
      State* here = chunks == 1 ? state : &before[size_t(strip * chunks + chunk) * most];
      if (writes) std::copy_n(here, most, state);
      Strip(shape, strip).run(functor, from, std::min(from + length, shape.count), writes, state);
      if (!writes) std::copy_n(state, most, here + most);
    });
  };
  if (chunks > 1) {
    each(false, chunks - 1);
    for (int64_t strip = 0; strip < strips; ++strip)
      for (int64_t chunk = 1; chunk < chunks; ++chunk) {
        State *here = &before[size_t(strip * chunks + chunk) * most], *last = here - most;
        for (size_t k = 0; k < most; ++k) here[k] = Functor::join(last[k], here[k]);
      }
  }
  each(true, chunks);
}

// A slice in chunks, each of which is V ranges of one length and a rest. A short one is a rest alone, so that its
// bits are those which it has among many slices.
template <class Functor>
struct ScanSlice {
  using State = typename Functor::State;
  static constexpr int V = scan_lanes<Functor>;
  static constexpr int64_t chunk = 1 << 14, least_stretched = 1 << 10;
  const ScanShape& shape;
  int64_t row, column;

  // The states before each range and the rest are in `state`; then those after.
  void run(const Functor& functor, int64_t number, bool writes, State (&state)[V + 1]) const {
    int64_t from = number * chunk, to = std::min(from + chunk, shape.count);
    int64_t range = shape.count < least_stretched ? 0 : (to - from) / (V * V) * V;
    if (range > 0) scan_tiles<V>(functor, shape, row, column, from, from + range, range, writes, state);
    scan_tiles<1>(functor, shape, row, column, from + V * range, to, 0, writes, state + V);
  }
};

template <class Functor>
void scan_slices(const Executor& executor, const Functor& functor, const ScanShape& shape, int64_t first_row) {
  using State = typename Functor::State;
  using Slice = ScanSlice<Functor>;
  struct Before {
    State range[Slice::V + 1];
  };
  int64_t slices = (shape.outer - first_row) * shape.inner, chunks = ceil_div(shape.count, Slice::chunk);
  auto slice = [&](int64_t k) { return Slice{shape, first_row + k / shape.inner, k % shape.inner}; };
  auto total = [&](int64_t k, int64_t chunk, Before& before) {
    std::fill_n(before.range, Slice::V + 1, Functor::none());
    slice(k).run(functor, chunk, false, before.range);
  };
  auto join = [&](State& state, Before& before) {
    for (State& range : before.range) range = std::exchange(state, Functor::join(state, range));
  };
  if (slices >= executor.threads || chunks == 1) {
    parallel_for(executor, slices, shape.count, [&](int64_t k) {
      State state = Functor::none();
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        Before before;
        total(k, chunk, before), join(state, before);
        slice(k).run(functor, chunk, true, before.range);
      }
    });
    return;
  }
  std::vector<Before> before(size_t(slices * chunks));
  auto each = [&](const auto& body) {
    parallel_for(executor, slices * chunks, Slice::chunk,
                 [&](int64_t task) { body(task / chunks, task % chunks, before[size_t(task)]); });
  };
  each(total);
  for (int64_t k = 0; k < slices; ++k) {
    State state = Functor::none();
    for (int64_t chunk = 0; chunk < chunks; ++chunk) join(state, before[size_t(k * chunks + chunk)]);
  }
  each([&](int64_t k, int64_t chunk, Before& before) { slice(k).run(functor, chunk, true, before.range); });
}

}  // namespace internal

template <class Functor>
Status scan(const Executor& executor, const Functor& functor, const ScanShape& shape) {
  constexpr int V = internal::scan_lanes<Functor>;
  if (shape.elements() == 0) return {};
  if (shape.inner >= V) {
    internal::scan_strips<internal::ScanColumnStrip<Functor>>(executor, functor, shape);
    return {};
  }
  if (shape.outer >= V) internal::scan_strips<internal::ScanRowStrip<Functor>>(executor, functor, shape);
  if (shape.outer % V > 0) internal::scan_slices(executor, functor, shape, shape.outer / V * V);
  return {};
}

}  // namespace baracuda
