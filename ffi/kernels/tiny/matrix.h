// What functors of the tiny pattern see: matrices in the memory of those that compute them together, and the team of
// these.
//
// A size is an int, or std::integral_constant<int, n> for n <= 4: then the matrix that a functor works on is in
// registers. A team has
//   each(first, last, f)   f(i) for first <= i < last, every i by one member, i always by the same one
//   sync()                 all see what others wrote before it
//   first_largest(first, last, value)   the index, as a number, of the first of the largest value(i)
//   of_matrix(condition)   whether it holds for any member, for each matrix
//   any(condition)         whether it holds for any matrix that is computed in step with this one
// One that has a matrix for itself also has
//   each_two(m, n, f)      f(k, l) for k < m and k <= l < n
//   each_of(m, n, make, f) f(make(k), i) for k < m and i < n, in the order of k
#pragma once

#include "number.h"

namespace baracuda {
namespace tiny {

template <class Size>
inline constexpr bool is_static = !std::is_same_v<Size, int>;

// body(first) ... body(last - 1); of a static size without a loop, so that no index is left at run time.
template <bool is_unrolled, class Body>
BARACUDA_HD void loop(int first, int last, const Body& body) {
  if constexpr (is_unrolled) {
#ifdef __CUDACC__
#pragma unroll
#else
#pragma GCC unroll 16
#endif
    for (int i = first; i < last; ++i) body(i);
  } else {
    for (int i = first; i < last; ++i) body(i);
  }
}
template <class Size, class Body>
BARACUDA_HD void loop(Size, int first, int last, const Body& body) {
  loop<is_static<Size>>(first, last, body);
}

// Elements `row_step` apart from row to row, on a team's memory.
template <class S>
struct View {
  using Number = S;
  S* data;
  int row_step;
  BARACUDA_HD S& operator()(int i, int j) const { return data[i * row_step + j]; }
};

// A square matrix of its own.
template <class S, int n>
struct Square {
  using Number = S;
  mutable S data[n * n];
  BARACUDA_HD S& operator()(int i, int j) const { return data[i * n + j]; }
};

template <class Matrix>
struct Transposed {
  using Number = typename Matrix::Number;
  const Matrix& a;
  BARACUDA_HD Number& operator()(int i, int j) const { return a(j, i); }
};

// Exchanges row i with row `from`, which is i or after it, and another one for every matrix of a pack.
template <class Team, class Size, class Matrix, class S>
BARACUDA_HD void exchange(Team team, Size rows, const Matrix& a, int i, S from, int columns) {
  if constexpr (is_static<Size>) {
    loop(rows, i + 1, rows, [&](int other) {
      auto is_it = from == all<S>(Element<S>(other));
      team.each(0, columns, [&](int j) {
        S here = a(i, j), there = a(other, j);
        a(i, j) = choose(is_it, there, here), a(other, j) = choose(is_it, here, there);
      });
    });
  } else if constexpr (is_pack<S>) {
    for (int k = 0; k < pack_lanes; ++k) {
      int other = int(from[k]);
      if (other == i) continue;
      for (int j = 0; j < columns; ++j) {
        Element<S> here = a(i, j)[k], there = a(other, j)[k];
        a(i, j)[k] = there, a(other, j)[k] = here;
      }
    }
  } else {
    int other = int(from);
    team.each(0, columns, [&](int j) {
      S here = a(i, j), there = a(other, j);
      a(i, j) = there, a(other, j) = here;
    });
  }
}

// a(row, j) = value; row is another one for every matrix of a pack. There is nothing to write outside of the `rows`
// rows.
template <class Matrix, class S>
BARACUDA_HD void scatter(const Matrix& a, int rows, S row, int j, S value) {
  if constexpr (is_pack<S>) {
    for (int k = 0; k < pack_lanes; ++k)
      if (row[k] >= 0 && row[k] < Element<S>(rows)) a(int(row[k]), j)[k] = value[k];
  } else {
    if (row >= 0 && row < S(rows)) a(int(row), j) = value;
  }
}

// body(matrix) on what is in a view of n x n, in registers where n is static.
template <class S, class Size, class Body>
BARACUDA_HD void on_square(View<S> view, Size n, const Body& body) {
  if constexpr (is_static<Size>) {
    Square<S, Size::value> own;
    loop(n, 0, n, [&](int i) { loop(n, 0, n, [&](int j) { own(i, j) = view(i, j); }); });
    body(own);
    loop(n, 0, n, [&](int i) { loop(n, 0, n, [&](int j) { view(i, j) = own(i, j); }); });
  } else {
    body(view);
  }
}

// The team of one member that has a matrix, or a pack, for itself.
template <bool is_unrolled>
struct Alone {
  template <class Body>
  BARACUDA_HD void each(int first, int last, const Body& body) const {
    loop<is_unrolled>(first, last, body);
  }
  template <class Body>
  BARACUDA_HD void each_two(int m, int n, const Body& body) const {
    loop<is_unrolled>(0, m, [&](int k) { loop<is_unrolled>(k, n, [&](int l) { body(k, l); }); });
  }
  template <class Make, class Body>
  BARACUDA_HD void each_of(int m, int n, const Make& make, const Body& body) const {
    loop<is_unrolled>(0, m, [&](int k) {
      auto made = make(k);
      loop<is_unrolled>(0, n, [&](int i) { body(made, i); });
    });
  }
  BARACUDA_HD void sync() const {}
  template <class Value>
  BARACUDA_HD auto first_largest(int first, int last, const Value& value) const {
    auto best = value(first);
    using S = decltype(best);
    S index = all<S>(Element<S>(first));
    loop<is_unrolled>(first + 1, last, [&](int i) {
      S other = value(i);
      auto is_larger = other > best;
      best = choose(is_larger, other, best), index = choose(is_larger, all<S>(Element<S>(i)), index);
    });
    return index;
  }
  template <class Condition>
  BARACUDA_HD Condition of_matrix(const Condition& condition) const {
    return condition;
  }
  template <class Condition>
  BARACUDA_HD bool any(const Condition& condition) const {
    return holds_for_any(condition);
  }
};

}  // namespace tiny
}  // namespace baracuda
