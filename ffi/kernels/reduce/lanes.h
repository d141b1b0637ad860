// Reductions: what the elements of a slice come to.
//
// A reducer has a State of V lanes, which it treats alike, and
//   none    the state of no elements
//   push    n elements x(0, k) ... x(n - 1, k) of each lane k
//   merge   another state, lane by lane
//   finish  writes the results of V lanes, whose elements of y are neighbors.
// Sums of several elements are formed pairwise.
#pragma once

#include "../complex.h"
#include "../unroll.h"

namespace baracuda {

// term(first), ... term(first + n - 1), put together pairwise.
template <int first, int n, class Term, class Join>
BARACUDA_HD auto folded(const Term& term, const Join& join) {
  if constexpr (n == 1)
    return term(first);
  else
    return join(folded<first, n / 2>(term, join), folded<first + n / 2, n - n / 2>(term, join));
}
template <int n, class Term>
BARACUDA_HD auto added(const Term& term) {
  return folded<0, n>(term, [](auto a, auto b) { return a + b; });
}

// Two neighbors of 16 bits, as the register that has them.
BARACUDA_HD uint32_t pair_from(const uint16_t& first) {
  uint32_t both;
  memcpy(&both, &first, sizeof(both));
  return both;
}

// Results of V lanes before they are rounded, where somebody asks for them.
template <class Wide, int V>
BARACUDA_HD void store_unrounded(Wide* to, int64_t element, const Wide (&value)[V]) {
  if (to == nullptr) return;
  for (int k = 0; k < V; ++k) to[element + k] = value[k];
}

template <class Wide, int V>
struct LaneState {
  Wide value[V];
  BARACUDA_HD LaneState<Wide, 1> lane(int k) const { return {{value[k]}}; }
  template <int n>
  BARACUDA_HD LaneState<Wide, n> lanes(int first) const {
    LaneState<Wide, n> s;
    for (int k = 0; k < n; ++k) s.value[k] = value[first + k];
    return s;
  }
};
template <class A, class B, int V>
struct LanePair {
  A first[V];
  B second[V];
  BARACUDA_HD LanePair<A, B, 1> lane(int k) const { return {{first[k]}, {second[k]}}; }
  template <int n>
  BARACUDA_HD LanePair<A, B, n> lanes(int from) const {
    LanePair<A, B, n> s;
    for (int k = 0; k < n; ++k) s.first[k] = first[from + k], s.second[k] = second[from + k];
    return s;
  }
};

namespace internal {
template <class T>
struct Sums {
  using Wide = Accumulator<T>;
  using Real = Wide;
};
template <class T>
struct Sums<Complex<T>> {
  using Wide = Complex<T>;
  using Real = T;
};
template <class T>
struct ElementBits {
  using type = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
};
}  // namespace internal

}  // namespace baracuda
