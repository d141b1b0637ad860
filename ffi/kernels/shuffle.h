// The elements of two vectors of N elements in another order, for the vector types of GCC and clang. Element k of the
// result is element index(k) of both vectors, one after the other. `index` is a lambda without captures.
#pragma once

#include <type_traits>
#include <utility>

namespace baracuda {

template <int N, class Pack, class Index>
inline __attribute__((always_inline)) void shuffle(const Pack& a, const Pack& b, Pack& to, Index index) {
#ifdef __clang__
  [&]<int... k>(std::integer_sequence<int, k...>) {
    to = __builtin_shufflevector(a, b, Index{}(k)...);
  }(std::make_integer_sequence<int, N>{});
#else
  // From an order that is constant in its front end, GCC 12 makes scalar code for vectors of less than 16 bytes.
  Pack order;
  for (int k = 0; k < N; ++k) order[k] = std::decay_t<decltype(order[0])>(index(k));
  to = __builtin_shuffle(a, b, order);
#endif
}

}  // namespace baracuda
