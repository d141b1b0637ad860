// Eigenvalues and eigenvectors of Hermitian parts, by Jacobi's rotations of every pair of rows and columns.
#pragma once

#include "eigh_rows.h"

namespace baracuda {
namespace tiny {

// A symmetric matrix of which the upper triangle is stored.
template <class Matrix>
struct Upper {
  using Number = typename Matrix::Number;
  const Matrix& a;
  BARACUDA_HD Number& operator()(int i, int j) const { return i < j ? a(i, j) : a(j, i); }
};

struct Eigh {
  // x, n x n; the eigenvalues, ascending; the eigenvectors, n x n; and the rotations of a step, two rows.
  static constexpr int arrays = 4;
  static constexpr int largest = 32;  // rows and columns

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    const View<S>&values = at[1], &turns = at[3];
    if constexpr (requires { Team::members; }) {
      EighRows<Team, S> rows{team, team.index()};
      S scale = rows.load(n, at[0]);
      bool is_done = rows.diagonalize() && is_finite(scale);
      rows.store(n, scale, is_done, values, at[2]);
      fix_signs(team, n, at[2], is_done);
    } else {
      on_square(at[0], n, [&](auto& x) {
        on_square(at[2], n, [&](auto& v) {
          S scale = prepare(team, n, x, v, values);
          auto is_done = diagonalize(team, n, Upper<std::decay_t<decltype(x)>>{x}, v, turns);
          is_done = is_done & is_finite(scale);
          team.each(0, n, [&](int i) { values(i, 0) = choose(is_done, x(i, i) * scale, not_a_number<S>()); });
          team.sync();
          sort(team, n, values, Columns<std::decay_t<decltype(v)>>{n, v});
          fix_signs(team, n, v, is_done);
        });
      });
    }
  }

  template <class Team, class Size, class V, class Condition>
  BARACUDA_HD static void fix_signs(Team team, Size n, const V& v, Condition is_done) {
    using S = typename V::Number;
    team.each(0, n, [&](int j) {
      S sign = choose(is_done, sign_of_column(n, v, n, j), not_a_number<S>());
      loop(n, 0, n, [&](int i) { v(i, j) = v(i, j) * sign; });
    });
    team.sync();
  }

  // x becomes its Hermitian part, divided by a power of two such that its largest element is about 1; v the identity.
  // Returns the power, or NaN where an element is not finite.
  template <class Team, class Size, class X, class V, class S>
  BARACUDA_HD static S prepare(Team team, Size n, const X& x, const V& v, const View<S>& largest) {
    S half = all<S>(Element<S>(0.5));
    team.each(0, n, [&](int j) {  // the upper triangle; none reads what another writes
      S most = magnitude(x(j, j));
      auto is_whole = is_finite(x(j, j));
      loop(n, 0, n, [&](int i) { v(i, j) = all<S>(i == j); });
      loop(n, 0, j, [&](int i) {
        S found = x(i, j) * half + x(j, i) * half;
        is_whole = is_whole & is_finite(found);
        most = larger(most, magnitude(found)), x(i, j) = found;
      });
      largest(j, 0) = choose(is_whole, most, not_a_number<S>());
    });
    team.sync();
    S scale = power_of_largest(n, largest), factor = all<S>(1) / scale;
    auto is_whole = is_finite(scale);
    team.each(0, n, [&](int j) {
      loop(n, 0, j + 1, [&](int i) { x(i, j) = choose(is_whole, x(i, j) * factor, all<S>(0)); });
    });
    team.sync();
    return scale;
  }

  // Rotates a to a diagonal matrix, and v with it. Returns whether that is what became of it.
  template <class Team, class Size, class A, class V, class S>
  BARACUDA_HD static auto diagonalize(Team team, Size n, const A& a, const V& v, const View<S>& turns) {
    constexpr auto negligible = std::numeric_limits<Element<S>>::epsilon() / 8;
    const int count = Pairs<Size>::count(n), steps = Pairs<Size>::steps(n), bye = n % 2;
    S one = all<S>(1), zero = all<S>(0);
    auto is_open = one == one;
    for (int sweep = 0; sweep < most_sweeps<Element<S>>; ++sweep) {
      auto turned = one != one;
      loop(n, 0, n > 1 ? steps : 0, [&](int step) {
        Pairs<Size> pairs{n, step};
        auto turn_of = [&](int k) { return Turn<S>{turns(0, k), turns(1, k), pairs.low(k), pairs.high(k)}; };
        auto is_step_turned = one != one;
        team.each(0, count, [&](int k) {
          int p = pairs.low(k), q = pairs.high(k);
          S between = a(p, q), apart = a(q, q) - a(p, p), twice = between + between;
          auto is_turned = magnitude(between) > all<S>(negligible);
          S size = magnitude(apart) + root(apart * apart + twice * twice);
          S tangent = choose(is_turned, twice / choose(is_turned, size, one), zero);
          tangent = choose(apart < zero, -tangent, tangent);
          S cosine = one / root(one + tangent * tangent), sine = tangent * cosine;
          turns(0, k) = sine, turns(1, k) = sine / (one + cosine);
          S moved = tangent * between;
          a(p, p) = a(p, p) - moved, a(q, q) = a(q, q) + moved;
          a(p, q) = choose(is_turned, zero, between);
          is_step_turned = is_step_turned | is_turned;
        });
        team.sync();
        turned = turned | is_step_turned;
        if (!team.any(is_step_turned)) return;
        // The elements that two pairs have in common, or a pair and the bye.
        team.each_two(count, count + bye, [&](int k, int l) {
          if (l == k) return;
          Turn<S> rows = turn_of(k);
          if (l == count) return rows(a(rows.p, pairs.bye()), a(rows.q, pairs.bye()));
          Turn<S> columns = turn_of(l);
          S pp = a(rows.p, columns.p), pq = a(rows.p, columns.q), qp = a(rows.q, columns.p), qq = a(rows.q, columns.q);
          rows(pp, qp), rows(pq, qq), columns(pp, pq), columns(qp, qq);
          a(rows.p, columns.p) = pp, a(rows.p, columns.q) = pq, a(rows.q, columns.p) = qp, a(rows.q, columns.q) = qq;
        });
        team.each_of(count, n, turn_of,
                     [&](const Turn<S>& columns, int i) { columns(v(i, columns.p), v(i, columns.q)); });
        team.sync();
      });
      is_open = team.of_matrix(turned);
      if (!team.any(turned)) break;
    }
    return !is_open;
  }
};

}  // namespace tiny
}  // namespace baracuda
