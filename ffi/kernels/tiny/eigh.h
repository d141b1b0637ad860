// Eigenvalues and eigenvectors of Hermitian parts, by Jacobi's rotations. A sweep rotates every pair of rows and
// columns once, in steps of disjoint pairs (the order of a round-robin tournament; Brent and Luk, 1985), so that the
// members of a team do a step together. What is negligible is not rotated: after a sweep without rotations further ones
// change no bit, and end.
#pragma once

#include "matrix.h"

namespace baracuda {
namespace tiny {

// The pairs of one step: each of n numbers is in one of them, except the number that has a bye where n is odd.
template <class Size>
struct Pairs {
  Size n;
  int step;
  BARACUDA_HD static int count(int n) { return n / 2; }
  BARACUDA_HD static int steps(int n) { return n + n % 2 - 1; }
  BARACUDA_HD int bye() const { return step; }
  // In the first pair of an even n the last number meets all others in turn.
  BARACUDA_HD int one(int k) const {
    if (n % 2 == 0 && k == 0) return n - 1;
    int distance = k + n % 2, found = step + distance;
    return found < steps(n) ? found : found - steps(n);
  }
  BARACUDA_HD int other(int k) const {
    int distance = k + n % 2, found = step - distance;
    return found < 0 ? found + steps(n) : found;
  }
  BARACUDA_HD int low(int k) const { return one(k) < other(k) ? one(k) : other(k); }
  BARACUDA_HD int high(int k) const { return one(k) < other(k) ? other(k) : one(k); }
};

// A symmetric matrix of which the upper triangle is stored.
template <class Matrix>
struct Upper {
  using Number = typename Matrix::Number;
  const Matrix& a;
  BARACUDA_HD Number& operator()(int i, int j) const { return i < j ? a(i, j) : a(j, i); }
};

// A rotation of p and q. x and y become cosine * x - sine * y and sine * x + cosine * y, where cosine = 1 - sine *
// slope: so they are no longer or shorter, up to one rounding of what is added (Rutishauser, 1966).
template <class S>
struct Turn {
  S sine, slope;
  int p, q;
  BARACUDA_HD void operator()(S& x, S& y) const {
    S turned = x - sine * (y + slope * x);
    y = y + sine * (x - slope * y), x = turned;
  }
};

struct Eigh {
  // x, n x n; the eigenvalues, ascending; the eigenvectors, n x n; and the rotations of a step, two rows.
  static constexpr int arrays = 4;
  // Usual matrices need five to nine. What has not converged becomes NaN.
  template <class T>
  static constexpr int most_sweeps = sizeof(T) == 8 ? 24 : 20;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    const View<S>&values = at[1], &turns = at[3];
    on_square(at[0], n, [&](auto& x) {
      on_square(at[2], n, [&](auto& v) {
        S scale = prepare(team, n, x, v, values);
        auto is_done = diagonalize(team, n, Upper<std::decay_t<decltype(x)>>{x}, v, turns);
        is_done = is_done & is_finite(scale);
        team.each(0, n, [&](int i) { values(i, 0) = choose(is_done, x(i, i) * scale, not_a_number<S>()); });
        team.sync();
        sort(team, n, values, v);
        team.each(0, n, [&](int j) {
          S sign = choose(is_done, of_column(n, v, j), not_a_number<S>());
          loop(n, 0, n, [&](int i) { v(i, j) = v(i, j) * sign; });
        });
        team.sync();
      });
    });
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
    S most = largest(0, 0);
    loop(n, 1, n, [&](int j) {
      S other = largest(j, 0);
      most = choose(is_finite(most), choose(is_finite(other), larger(most, other), other), most);
    });
    auto is_whole = is_finite(most);
    S scale = power_of_two(most), factor = all<S>(1) / scale;
    team.sync();
    team.each(0, n, [&](int j) {
      loop(n, 0, j + 1, [&](int i) { x(i, j) = choose(is_whole, x(i, j) * factor, all<S>(0)); });
    });
    team.sync();
    return choose(is_whole, scale, not_a_number<S>());
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

  // By exchanges of neighbors; equal values stay in order.
  template <class Team, class Size, class V, class S>
  BARACUDA_HD static void sort(Team team, Size n, const View<S>& values, const V& v) {
    for (int round = 0; round < n; ++round) {
      auto sort_pairs = [&](auto parity) {
        team.each(0, n, [&](int i) {
          loop(n, 0, n, [&](int j) {
            if (j % 2 != parity || j + 1 >= n) return;
            auto is_wrong = values(j + 1, 0) < values(j, 0);
            S a = v(i, j), b = v(i, j + 1);
            v(i, j) = choose(is_wrong, b, a), v(i, j + 1) = choose(is_wrong, a, b);
          });
        });
        team.sync();
        team.each(0, n, [&](int j) {
          if (j % 2 != parity || j + 1 >= n) return;
          S a = values(j, 0), b = values(j + 1, 0);
          auto is_wrong = b < a;
          values(j, 0) = choose(is_wrong, b, a), values(j + 1, 0) = choose(is_wrong, a, b);
        });
        team.sync();
      };
      if (round % 2 == 0)
        sort_pairs(std::integral_constant<int, 0>{});
      else
        sort_pairs(std::integral_constant<int, 1>{});
    }
  }

  // The sign by which the first of the elements of column j that are about as large as any becomes positive.
  template <class Size, class V>
  BARACUDA_HD static auto of_column(Size n, const V& v, int j) {
    using S = typename V::Number;
    const Element<S> near = 1 - 16 * std::sqrt(std::numeric_limits<Element<S>>::epsilon());
    S most = all<S>(0), chosen = all<S>(1);
    loop(n, 0, n, [&](int i) { most = larger(most, magnitude(v(i, j))); });
    S enough = most * all<S>(near);
    loop(n, 0, n, [&](int back) {
      S value = v(n - 1 - back, j);
      chosen = choose(magnitude(value) >= enough, value, chosen);
    });
    return choose(chosen < all<S>(0), all<S>(-1), all<S>(1));
  }
};

}  // namespace tiny
}  // namespace baracuda
