// Exponentials of matrices: a matrix is divided by a power of two, of that Padé's rational function is taken, and this
// is squared as often as the matrix was halved (Higham, 2005). A column is one member's.
#pragma once

#include "lu.h"

namespace baracuda {
namespace tiny {

// Column j of c becomes that of a b. Nobody else needs to have written it, or that of b.
template <class Size, class S>
BARACUDA_HD void multiply_column(Size n, const View<S>& a, const View<S>& b, const View<S>& c, int j) {
  loop(n, 0, n, [&](int i) {
    S sum = all<S>(0);
    loop(n, 0, n, [&](int k) { sum = sum + a(i, k) * b(k, j); });
    c(i, j) = sum;
  });
}

struct MatrixExp {
  // x, n x n; y, n x n; and four others of this size.
  static constexpr int arrays = 6;
  static constexpr int largest = 32;       // rows and columns
  static constexpr int most_squares = 16;  // a matrix that needs more becomes NaN
  // The degree of the rational function, and up to which norm it is exact to the rounding error.
  template <class T>
  static constexpr int degree = sizeof(T) == 8 ? 13 : 7;
  template <class T>
  static constexpr T largest_norm = T(sizeof(T) == 8 ? 5.371920351148152 : 3.925724783138660);

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    const View<S>&x = at[0], &y = at[1];
    S norm = norm_of(team, n, x, at[2]), scale = all<S>(1), count = all<S>(0);
    auto is_whole = is_finite(norm);
    for (int i = 0; i <= most_squares; ++i) {
      auto is_long = is_whole & (norm * scale > all<S>(largest_norm<Element<S>>));
      scale = choose(is_long, scale * all<S>(Element<S>(0.5)), scale);
      count = choose(is_long, count + all<S>(1), count);
    }
    is_whole = is_whole & (count <= all<S>(most_squares));
    team.each(0, n,
              [&](int j) { loop(n, 0, n, [&](int i) { x(i, j) = choose(is_whole, x(i, j) * scale, all<S>(0)); }); });
    team.sync();
    approximate(team, n, at);
    for (int i = 0; i < most_squares; ++i) {
      auto is_due = count > all<S>(Element<S>(i));
      is_due = is_due & is_whole;
      if (!team.any(is_due)) break;
      team.each(0, n, [&](int j) { multiply_column(n, y, y, x, j); });
      team.sync();
      team.each(0, n, [&](int j) { loop(n, 0, n, [&](int k) { y(k, j) = choose(is_due, x(k, j), y(k, j)); }); });
      team.sync();
    }
    team.each(0, n,
              [&](int j) { loop(n, 0, n, [&](int i) { y(i, j) = choose(is_whole, y(i, j), not_a_number<S>()); }); });
    team.sync();
  }

  // The largest sum of a column's magnitudes; not finite where an element is not.
  template <class Team, class Size, class S>
  BARACUDA_HD static S norm_of(Team team, Size n, const View<S>& x, const View<S>& sums) {
    team.each(0, n, [&](int j) {
      S sum = all<S>(0);
      loop(n, 0, n, [&](int i) { sum = sum + magnitude(x(i, j)); });
      sums(0, j) = sum;
    });
    team.sync();
    S most = all<S>(0);
    auto is_whole = most == most;
    loop(n, 0, n, [&](int j) {
      is_whole = is_whole & is_finite(sums(0, j));
      most = larger(most, sums(0, j));
    });
    team.sync();
    return choose(is_whole, most, not_a_number<S>());
  }

  // y becomes p(-x)^-1 p(x). With b_k the coefficients of p, of which even and odd powers are apart.
  template <class Team, class Size, class S>
  BARACUDA_HD static void approximate(Team team, Size n, const View<S> (&at)[arrays]) {
    using T = Element<S>;
    constexpr int m = degree<T>;
    const View<S>&x = at[0], &even = at[1], &square = at[2], &odd = at[3];
    team.each(0, n, [&](int j) { multiply_column(n, x, x, square, j); });
    team.sync();
    team.each(0, n, [&](int j) {  // of powers a member needs its own columns alone
      View<S> power = at[4], next = at[5];
      double b = 1;
      auto following = [&](int k) { return b = b * (m - k + 1) / (k * (2.0 * m - k + 1)); };
      S first = all<S>(T(following(1))), second = all<S>(T(following(2))), third = all<S>(T(following(3)));
      loop(n, 0, n, [&](int i) {
        S found = square(i, j), one = all<S>(i == j);
        power(i, j) = found, even(i, j) = one + second * found, odd(i, j) = first * one + third * found;
      });
      for (int k = 4; k < m; k += 2) {
        multiply_column(n, square, power, next, j);
        View<S> other = power;
        power = next, next = other;
        S of_even = all<S>(T(following(k))), of_odd = all<S>(T(following(k + 1)));
        loop(n, 0, n, [&](int i) {
          S found = power(i, j);
          even(i, j) = even(i, j) + of_even * found, odd(i, j) = odd(i, j) + of_odd * found;
        });
      }
      multiply_column(n, x, odd, next, j);
      loop(n, 0, n, [&](int i) {
        S of_odd = next(i, j), of_even = even(i, j);
        odd(i, j) = of_even - of_odd, even(i, j) = of_even + of_odd;
      });
    });
    team.sync();
    eliminate(team, n, n, odd, [&](int j, S from) { exchange(team, n, even, j, from, n); });
    substitute(team, n, n, odd, even);
  }
};

}  // namespace tiny
}  // namespace baracuda
