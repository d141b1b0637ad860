// The elementwise pattern on CPU threads: equal stretches of the results.
#pragma once

#include <algorithm>

#include "elementwise.h"

namespace baracuda {
namespace internal {

// The elements [0, count) of arrays that do not broadcast: the loop that the compiler vectorises. `work` is a copy,
// which no store may change.
template <class Functor, int... i>
void elementwise_loop(const Elementwise<Functor> work, int64_t count, std::integer_sequence<int, i...>) {
#pragma GCC ivdep
  for (int64_t k = 0; k < count; ++k) work.template run<1>(k, {(void(i), k)...}, {(void(i), true)...});
}

// The elements [to, to + count) of an operand that broadcasts, written out.
template <class T>
void repeat_elements(const T* array, int rank, const int64_t* extent, const int64_t* step, int64_t to, int64_t count,
                     T* out) {
  int64_t place[elementwise_rank], last = rank - 1;
  for (int64_t d = last; d >= 0; to /= extent[d], --d) array += (place[d] = to % extent[d]) * step[d];
  while (count > 0) {
    int64_t length = std::min(count, extent[last] - place[last]);
    if (step[last]) {
      std::copy_n(array, length, out);
    } else {
      T value = *array;
      for (int64_t k = 0; k < length; ++k) out[k] = value;
    }
    out += length, count -= length;
    array += length * step[last], place[last] += length;
    for (int64_t d = last; d > 0 && place[d] == extent[d]; --d) {
      array += step[d - 1] - extent[d] * step[d];
      place[d] = 0, ++place[d - 1];
    }
  }
}

}  // namespace internal

// Operands that broadcast are written out, piece by piece, so that one loop does for all.
template <class Functor>
Status elementwise(const Executor& executor, const Elementwise<Functor>& work,
                   const ElementwiseShape<Elementwise<Functor>::operands>& shape) {
  using Work = Elementwise<Functor>;
  constexpr int64_t stretch = 1 << 14, piece = 1 << 10;
  int64_t elements = shape.elements();
  bool broadcasts[Work::operands], any = false;
  for (int i = 0; i < Work::operands; ++i) {
    broadcasts[i] = false;
    for (int d = 0; d < shape.rank; ++d) broadcasts[i] = broadcasts[i] || shape.step[i][d] == 0;
    any = any || broadcasts[i];
  }
  parallel_for(executor, ceil_div(elements, stretch), stretch, [&](int64_t task) {
    alignas(64) char repeated[Work::operands][piece * Work::bytes];
    int64_t end = std::min(elements, (task + 1) * stretch);
    for (int64_t to = task * stretch, count; to < end; to += count) {
      count = std::min(end - to, any ? piece : stretch);
      Work part = work;
      internal::unrolled<Work::operands>([&](auto i) {
        using T = typename Work::In::template at<i()>;
        const T* array = static_cast<const T*>(work.in[i()]);
        if (broadcasts[i()]) {
          T* out = reinterpret_cast<T*>(repeated[i()]);
          internal::repeat_elements(array, shape.rank, shape.extent, shape.step[i()], to, count, out);
          part.in[i()] = out;
        } else {
          part.in[i()] = array + to;
        }
      });
      internal::unrolled<Work::results>(
          [&](auto j) { part.out[j()] = static_cast<typename Work::Out::template at<j()>*>(work.out[j()]) + to; });
      internal::elementwise_loop(part, count, std::make_integer_sequence<int, Work::operands>());
    }
  });
  return {};
}

}  // namespace baracuda
