// The elementwise pattern on CPU threads: equal stretches of the results, row by row.
#pragma once

#include <algorithm>

#include "elementwise.h"

namespace baracuda {
namespace internal {

// Neighbours that one loop takes at once.
inline constexpr int64_t elementwise_piece = 512;

// The elements [0, count) of arrays without steps: the loop that the compiler vectorises. `work` is a copy, which no
// store may change.
template <class Functor, int... i>
void elementwise_loop(const Elementwise<Functor> work, int64_t count, std::integer_sequence<int, i...>) {
#pragma GCC ivdep
  for (int64_t k = 0; k < count; ++k) work.template run<1>(k, {(void(i), k)...}, {(void(i), true)...});
}

// The elements [to, to + count) of one row. What broadcasts along it is repeated, so that one loop does for all.
template <class Functor, int operands>
void elementwise_row(const Elementwise<Functor>& work, int64_t to, int64_t count, const int64_t (&from)[operands],
                     const bool (&step)[operands]) {
  using Work = Elementwise<Functor>;
  alignas(64) char repeated[operands][elementwise_piece * Work::bytes];
  Work piece = work;
  unrolled<operands>([&](auto i) {
    using T = typename Work::In::template at<i()>;
    const T* array = static_cast<const T*>(work.in[i()]) + from[i()];
    piece.in[i()] = array;
    if (step[i()]) return;
    std::fill_n(reinterpret_cast<T*>(repeated[i()]), std::min(count, elementwise_piece), *array);
    piece.in[i()] = repeated[i()];
  });
  unrolled<Work::results>(
      [&](auto j) { piece.out[j()] = static_cast<typename Work::Out::template at<j()>*>(work.out[j()]) + to; });
  bool any = !std::all_of(step, step + operands, [](bool s) { return s; });
  for (int64_t length; count > 0; count -= length) {
    length = any ? std::min(count, elementwise_piece) : count;
    elementwise_loop(piece, length, std::make_integer_sequence<int, operands>());
    unrolled<operands>([&](auto i) {
      using T = typename Work::In::template at<i()>;
      if (step[i()]) piece.in[i()] = static_cast<const T*>(piece.in[i()]) + length;
    });
    unrolled<Work::results>(
        [&](auto j) { piece.out[j()] = static_cast<typename Work::Out::template at<j()>*>(piece.out[j()]) + length; });
  }
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
