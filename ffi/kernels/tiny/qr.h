// QR factorizations by Householder reflections, with LAPACK's signs: x = H_1 ... H_k R, H_j = I - tau_j v_j v_j^T. A
// column is one member's.
#pragma once

#include "matrix.h"

namespace baracuda {
namespace tiny {

// a becomes R on and above the diagonal, and below it the vectors v, whose ones on the diagonal are not stored. `dots`
// has a row for each column of a, and `tau` one for each reflection.
template <class Team, class Size, class Matrix, class S>
BARACUDA_HD void reflect(Team team, Size rows, Size columns, const Matrix& a, const View<S>& dots, const View<S>& tau) {
  const S one = all<S>(1), zero = all<S>(0);
  loop(rows, 0, columns < rows ? columns : rows, [&](int j) {
    S most = zero;
    loop(rows, j + 1, rows, [&](int i) { most = larger(most, magnitude(a(i, j))); });
    // Divided by a power of two, squares neither over- nor underflow.
    S scale = power_of_two(most), factor = one / scale;
    team.each(j, columns, [&](int k) {  // that of column j with itself is the square of its norm
      S sum = zero, other = k == j ? factor : one;
      loop(rows, j + 1, rows, [&](int i) { sum = sum + a(i, j) * factor * (a(i, k) * other); });
      dots(k, 0) = sum;
    });
    team.sync();
    S norm = root(dots(j, 0)) * scale, head = a(j, j), size = magnitude(head);
    auto is_zero = norm == zero, is_longer = size < norm;
    S longer = choose(is_longer, norm, size), ratio = choose(is_longer, size, norm) / choose(is_zero, one, longer);
    S length = longer * root(one + ratio * ratio), diagonal = choose(head < zero, length, -length);
    S rest = choose(is_zero, one, head - diagonal), inverse = one / (rest * factor);
    S weight = choose(is_zero, zero, -rest / choose(is_zero, one, diagonal));
    team.sync();
    team.each(j, rows, [&](int i) {
      a(i, j) = i == j ? choose(is_zero, head, diagonal) : a(i, j) * factor * inverse;
      if (i == j) tau(j, 0) = weight;
    });
    team.sync();
    team.each(j + 1, columns, [&](int k) {
      S moved = weight * (a(j, k) + dots(k, 0) * inverse);
      a(j, k) = a(j, k) - moved;
      loop(rows, j + 1, rows, [&](int i) { a(i, k) = a(i, k) - a(i, j) * moved; });
    });
    team.sync();
  });
}

// Column k of c becomes that of H_j c.
template <class Size, class Matrix, class Sides, class S>
BARACUDA_HD void reflect_column(Size rows, const Matrix& a, S weight, int j, const Sides& c, int k) {
  S sum = c(j, k);
  loop(rows, j + 1, rows, [&](int i) { sum = sum + a(i, j) * c(i, k); });
  S moved = weight * sum;
  c(j, k) = c(j, k) - moved;
  loop(rows, j + 1, rows, [&](int i) { c(i, k) = c(i, k) - a(i, j) * moved; });
}

// Column k of q becomes that of H_1 ... H_count.
template <class Size, class Matrix, class S, class Q>
BARACUDA_HD void column_of_product(Size rows, int count, const Matrix& a, const View<S>& tau, const Q& q, int k) {
  loop(rows, 0, rows, [&](int i) { q(i, k) = all<S>(i == k); });
  loop(rows, 0, count, [&](int step) {  // those after k do not change it
    int j = count - 1 - step;
    if (j <= k) reflect_column(rows, a, tau(j, 0), j, q, k);
  });
}

struct Geqrf {
  int rows, columns;
  // x, rows x columns, which becomes R and the vectors; tau; and a row for each column of x.
  static constexpr int arrays = 3;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    if constexpr (is_static<Size>)
      on_square(at[0], n, [&](auto& a) { reflect(team, n, n, a, at[2], at[1]); });
    else
      reflect(team, rows, columns, at[0], at[2], at[1]);
  }
};

struct Qr {
  int rows, columns;
  // x, rows x columns; with k the smaller of the two: q, rows x k, and r, k x columns; tau; and a row for each column
  // of x.
  static constexpr int arrays = 5;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    if constexpr (is_static<Size>) {
      on_square(at[0], n,
                [&](auto& a) { on_square(at[1], n, [&](auto& q) { factor(team, n, n, a, q, at[2], at[3], at[4]); }); });
    } else {
      factor(team, rows, columns, at[0], at[1], at[2], at[3], at[4]);
    }
  }

  template <class Team, class Size, class A, class Q, class S>
  BARACUDA_HD static void factor(Team team, Size rows, Size columns, const A& a, const Q& q, const View<S>& r,
                                 const View<S>& tau, const View<S>& dots) {
    reflect(team, rows, columns, a, dots, tau);
    const int count = columns < rows ? columns : rows;
    team.each(0, columns, [&](int k) { loop(rows, 0, count, [&](int i) { r(i, k) = i <= k ? a(i, k) : all<S>(0); }); });
    team.each(0, count, [&](int k) { column_of_product(rows, count, a, tau, q, k); });
    team.sync();
  }
};

struct Ormqr {
  int rows, count;
  bool is_transposed;
  // Vectors in the first columns of x; tau; and c, rows x k, where the product is written.
  static constexpr int arrays = 3;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size, int k, const View<S> (&at)[arrays]) const {
    team.each(0, k, [&](int column) {
      for (int step = 0; step < count; ++step) {
        int j = is_transposed ? step : count - 1 - step;
        reflect_column(rows, at[0], at[1](j, 0), j, at[2], column);
      }
    });
    team.sync();
  }
};

}  // namespace tiny
}  // namespace baracuda
