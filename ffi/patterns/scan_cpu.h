// The scan pattern on CPU threads. A worker has a few neighbouring lines at once: one alone would wait for each of its
// joins. Where lines are few and long, they are cut into chunks, whose totals are formed first.
#pragma once

#include <algorithm>
#include <vector>

#include "scan.h"

namespace baracuda {
namespace internal {

inline constexpr int scan_lanes = 8;
inline constexpr int64_t scan_chunk = 1 << 14;

// Lines first ... first + W - 1, positions [from, to): joins their terms to `state`, and writes if wanted.
template <int W, bool writes, class Functor>
void scan_stretch(const Functor functor, const ScanShape& shape, int64_t first, int64_t from, int64_t to,
                  typename Functor::State (&state)[W]) {
  using State = typename Functor::State;
  ScanColumns<1> place[W];
  for (int k = 0; k < W; ++k) place[k] = shape.columns<1>((first + k) / shape.inner, (first + k) % shape.inner, from);
  for (int64_t position = from; position < to; ++position)
    for (int k = 0; k < W; ++k) {
      ScanColumns<1> at = place[k];
      auto in = functor.read(at);
      State seen[1] = {state[k]};
      state[k] = Functor::join(state[k], functor.term(at, in, 0));
      if (!shape.exclusive) seen[0] = state[k];
      if constexpr (writes) functor.write(at, in, seen);
      place[k].cell += at.step, ++place[k].position;
    }
}

template <int W, class Functor>
void scan_lines(const Executor& executor, const Functor& functor, const ScanShape& shape, int64_t first,
                int64_t lines) {
  using State = typename Functor::State;
  struct Lanes {
    State state[W];
  };
  constexpr int64_t many = 64;
  int64_t groups = lines / W, chunks = groups >= many ? 1 : ceil_div(shape.count, scan_chunk);
  int64_t length = chunks == 1 ? shape.count : scan_chunk;
  Lanes none;
  std::fill_n(none.state, W, Functor::none());
  std::vector<Lanes> before(size_t(groups * chunks), none);
  auto each = [&](auto writes, int64_t last) {
    parallel_for(executor, groups * last, length * W, [&](int64_t task) {
      int64_t group = task / last, chunk = task % last, from = chunk * length;
      Lanes state = decltype(writes)::value ? before[size_t(group * chunks + chunk)] : none;
      scan_stretch<W, decltype(writes)::value>(functor, shape, first + group * W, from,
                                               std::min(from + length, shape.count), state.state);
      if constexpr (!decltype(writes)::value) before[size_t(group * chunks + chunk + 1)] = state;
    });
  };
  if (chunks > 1) {
    each(std::false_type(), chunks - 1);
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t chunk = 1; chunk < chunks; ++chunk) {
        Lanes *here = &before[size_t(group * chunks + chunk)], *last = here - 1;
        for (int k = 0; k < W; ++k) here->state[k] = Functor::join(last->state[k], here->state[k]);
      }
  }
  each(std::true_type(), chunks);
}

}  // namespace internal

template <class Functor>
Status scan(const Executor& executor, const Functor& functor, const ScanShape& shape) {
  if (shape.cells() == 0) return {};
  int64_t lines = shape.outer * shape.inner, whole = lines / internal::scan_lanes * internal::scan_lanes;
  internal::scan_lines<internal::scan_lanes>(executor, functor, shape, 0, whole);
  internal::scan_lines<1>(executor, functor, shape, whole, lines - whole);
  return {};
}

}  // namespace baracuda
