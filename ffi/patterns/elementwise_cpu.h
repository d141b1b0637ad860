// The elementwise pattern on CPU threads: equal stretches of the results, row by row.
#pragma once

#include <algorithm>

#include "elementwise.h"

namespace baracuda {
namespace internal {

// The elements [to, to + count) of one row. `work` is a copy, whose parameters no store may change.
template <class Functor, int operands>
void elementwise_row(const Elementwise<Functor> work, int64_t to, int64_t count, int64_t (&from)[operands],
                     const bool (&step)[operands]) {
  constexpr int V = 64 / Elementwise<Functor>::bytes;
  auto advance = [&](int64_t by) {
    for (int i = 0; i < operands; ++i) from[i] += step[i] * by;
  };
  int64_t column = 0;
  for (; column + V <= count; column += V, advance(V)) work.template run<V>(to + column, from, step);
  for (; column < count; ++column, advance(1)) work.template run<1>(to + column, from, step);
}

}  // namespace internal

template <class Functor>
Status elementwise(const Executor& executor, const Elementwise<Functor>& work,
                   const ElementwiseShape<Elementwise<Functor>::operands>& shape) {
  constexpr int operands = Elementwise<Functor>::operands;
  constexpr int64_t stretch = 1 << 14;
  int64_t elements = shape.elements(), columns = shape.columns();
  if (elements == 0) return {};
  bool step[operands];
  for (int i = 0; i < operands; ++i) step[i] = shape.step[i][shape.rank - 1] != 0;
  parallel_for(executor, ceil_div(elements, stretch), stretch, [&](int64_t task) {
    int64_t end = std::min(elements, (task + 1) * stretch);
    for (int64_t to = task * stretch; to < end;) {
      int64_t from[operands] = {}, rest = to;
      for (int d = shape.rank - 1; d >= 0; --d) {
        int64_t place = rest % shape.extent[d];
        rest /= shape.extent[d];
        for (int i = 0; i < operands; ++i) from[i] += place * shape.step[i][d];
      }
      int64_t count = std::min(columns - to % columns, end - to);
      internal::elementwise_row(work, to, count, from, step);
      to += count;
    }
  });
  return {};
}

}  // namespace baracuda
