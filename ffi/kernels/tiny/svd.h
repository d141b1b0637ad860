// Singular values and vectors, by Jacobi's rotations of every pair of columns (Hestenes, 1958), which make columns
// orthogonal: their norms are the singular values. A QR factorization of these columns gives vectors that are
// orthonormal, also those of singular values that are 0.
#pragma once

#include "jacobi.h"
#include "qr.h"

namespace baracuda {
namespace tiny {

// A matrix on a team's memory, or its transpose.
template <class S>
struct Strided {
  using Number = S;
  S* data;
  int row_step, column_step;
  BARACUDA_HD S& operator()(int i, int j) const { return data[i * row_step + j * column_step]; }
  BARACUDA_HD static Strided of(View<S> view, bool is_transposed) {
    return {view.data, is_transposed ? 1 : view.row_step, is_transposed ? view.row_step : 1};
  }
};

struct Svd {
  int rows, columns;
  bool has_vectors;
  // x, rows x columns; with k the smaller of the two: u, rows x k, and vh, k x columns, both empty without vectors; the
  // singular values, descending; what QR needs for a column; and its tau.
  static constexpr int arrays = 6;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    const View<S>&values = at[3], &dots = at[4], &tau = at[5];
    if constexpr (is_static<Size>) {
      on_square(at[0], n, [&](auto& x) {
        Square<S, Size::value> v;
        decompose(team, n, n, x, v, values, dots);
        if (!has_vectors) return;
        on_square(at[1], n, [&](auto& u) {
          finish(team, n, n, x, u, v, false, values, dots, tau);
          loop(n, 0, n, [&](int i) { loop(n, 0, n, [&](int j) { at[2](j, i) = v(i, j); }); });
        });
      });
    } else {
      // Of a wide matrix, its transpose: the longer vectors are those of the QR factorization.
      bool is_wide = rows < columns;
      int longer = is_wide ? columns : rows, count = is_wide ? rows : columns;
      auto x = Strided<S>::of(at[0], is_wide);
      View<S> u = at[1], vh = at[2];  // chosen by their members: an index that is known late would be one of memory
      View<S> long_one = {is_wide ? vh.data : u.data, is_wide ? vh.row_step : u.row_step};
      View<S> short_one = {is_wide ? u.data : vh.data, is_wide ? u.row_step : vh.row_step};
      auto q = Strided<S>::of(long_one, is_wide), v = Strided<S>::of(short_one, !is_wide);
      decompose(team, longer, count, x, v, values, dots);
      if (has_vectors) finish(team, longer, count, x, q, v, is_wide, values, dots, tau);
    }
  }

  // The columns of x become orthogonal, in the order of the singular values; with vectors, v the rotations.
  template <class Team, class Size, class X, class V, class S>
  BARACUDA_HD void decompose(Team team, Size longer, Size count, const X& x, const V& v, const View<S>& values,
                             const View<S>& norms) const {
    S scale = prepare(team, longer, count, x, v, norms);
    auto is_done = rotate(team, longer, count, x, v) & is_finite(scale);
    team.each(0, count, [&](int j) {
      S sum = all<S>(0);
      loop(longer, 0, longer, [&](int i) { sum = sum + x(i, j) * x(i, j); });
      values(j, 0) = -root(sum);
    });
    team.sync();
    if (has_vectors) {
      sort(team, count, values, Columns<X>{int(longer), x}, Columns<V>{int(count), v});
    } else {
      sort(team, count, values);
    }
    team.each(0, count, [&](int j) { values(j, 0) = choose(is_done, -values(j, 0) * scale, not_a_number<S>()); });
    team.sync();
  }

  // x becomes such that its largest element is about 1; v the identity. Returns by what x was divided, or NaN where an
  // element is not finite.
  template <class Team, class Size, class X, class V, class S>
  BARACUDA_HD S prepare(Team team, Size longer, Size count, const X& x, const V& v, const View<S>& largest) const {
    team.each(0, count, [&](int j) {
      S most = all<S>(0);
      auto is_whole = most == most;
      loop(longer, 0, longer, [&](int i) {
        is_whole = is_whole & is_finite(x(i, j));
        most = larger(most, magnitude(x(i, j)));
      });
      if (has_vectors) loop(count, 0, count, [&](int i) { v(i, j) = all<S>(i == j); });
      largest(j, 0) = choose(is_whole, most, not_a_number<S>());
    });
    team.sync();
    S scale = power_of_largest(count, largest), factor = all<S>(1) / scale;
    auto is_whole = is_finite(scale);
    team.each(0, count, [&](int j) {
      loop(longer, 0, longer, [&](int i) { x(i, j) = choose(is_whole, x(i, j) * factor, all<S>(0)); });
    });
    team.sync();
    return scale;
  }

  // Makes the columns of x orthogonal, up to the rounding error of the largest. Returns whether that is what became of
  // them.
  template <class Team, class Size, class X, class V>
  BARACUDA_HD auto rotate(Team team, Size longer, Size count, const X& x, const V& v) const {
    using S = typename X::Number;
    constexpr auto negligible = 4 * std::numeric_limits<Element<S>>::epsilon();
    const S one = all<S>(1), zero = all<S>(0);
    auto is_open = one == one;
    for (int sweep = 0; sweep < most_sweeps<Element<S>>; ++sweep) {
      auto turned = one != one;
      loop(count, 0, count > 1 ? Pairs<Size>::steps(count) : 0, [&](int step) {
        Pairs<Size> pairs{count, step};
        team.each(0, Pairs<Size>::count(count), [&](int k) {
          int p = pairs.low(k), q = pairs.high(k);
          S first = zero, second = zero, between = zero;
          loop(longer, 0, longer, [&](int i) {
            S a = x(i, p), b = x(i, q);
            first = first + a * a, second = second + b * b, between = between + a * b;
          });
          S apart = second - first, norm = root(choose(apart < zero, first, second));
          S other = root(choose(apart < zero, second, first));
          auto is_turned = magnitude(between) > all<S>(negligible) * norm * larger(other, one);
          if (!holds_for_any(is_turned)) return;
          turned = turned | is_turned;
          S twice = between + between, size = magnitude(apart) + root(apart * apart + twice * twice);
          S tangent = choose(is_turned, twice / choose(is_turned, size, one), zero);
          tangent = choose(apart < zero, -tangent, tangent);
          S cosine = one / root(one + tangent * tangent), sine = tangent * cosine;
          Turn<S> turn{sine, sine / (one + cosine), p, q};
          loop(longer, 0, longer, [&](int i) { turn(x(i, p), x(i, q)); });
          if (has_vectors) loop(count, 0, count, [&](int i) { turn(v(i, p), v(i, q)); });
        });
        team.sync();
      });
      is_open = team.of_matrix(turned);
      if (!team.any(turned)) break;
    }
    return !is_open;
  }

  // Of orthogonal columns x: q becomes them, with norms of 1, and signs are fixed, by the first large element of each
  // column of q, or of v.
  template <class Team, class Size, class X, class Q, class V, class S>
  BARACUDA_HD static void finish(Team team, Size longer, Size count, const X& x, const Q& q, const V& v, bool by_v,
                                 const View<S>& values, const View<S>& dots, const View<S>& tau) {
    reflect(team, longer, count, x, dots, tau);
    team.each(0, count, [&](int j) {
      column_of_product(longer, int(count), x, tau, q, j);
      S sign = by_v ? sign_of_column(count, v, count, j) : sign_of_column(longer, q, longer, j);
      sign = choose(is_finite(values(j, 0)), sign, not_a_number<S>());
      S other = choose(x(j, j) < all<S>(0), -sign, sign), of_q = by_v ? other : sign, of_v = by_v ? sign : other;
      loop(longer, 0, longer, [&](int i) { q(i, j) = q(i, j) * of_q; });
      loop(count, 0, count, [&](int i) { v(i, j) = v(i, j) * of_v; });
    });
    team.sync();
  }
};

}  // namespace tiny
}  // namespace baracuda
