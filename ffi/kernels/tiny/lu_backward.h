// Gradients of what elimination gives: linear systems, inverses, factors and determinants.
#pragma once

#include "lu.h"
#include "products.h"

namespace baracuda {
namespace tiny {

template <class Team, class Size, class Matrix>
BARACUDA_HD void make_identity(Team team, Size n, const Matrix& y) {
  using S = typename Matrix::Number;
  team.each(0, n, [&](int j) { loop(n, 0, n, [&](int i) { y(i, j) = all<S>(i == j); }); });
  team.sync();
}

struct SolveBackward {
  // a, n x n, where its cotangent is written; the solution y, n x k; its cotangent, n x k, where that of b is written.
  static constexpr int arrays = 3;
  static constexpr bool aligned_rows = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int k, const View<S> (&at)[arrays]) const {
    const View<S>&y = at[1], &d = at[2];
    on_square(at[0], n, [&](auto& a) {
      if constexpr (HasRows<Team>) {
        Elimination<Team, S> rows{team};
        rows.load_transposed(n, a);
        solve(rows, n, k, a, d);
      } else {
        const Transposed<std::decay_t<decltype(a)>> of_a{a};
        eliminate(team, n, n, of_a, [&](int j, S from) { exchange(team, n, d, j, from, k); });
        substitute(team, n, k, of_a, d);
      }
      team.each(0, n, [&](int i) {
        dots<S>(
            n, n, k, [&](int j, int c) { return y(j, c); }, [&](int c) { return d(i, c); },
            [&](int j, S sum) { a(i, j) = -sum; });
      });
      team.sync();
    });
  }
};

struct InverseBackward {
  // The inverse y, n x n; its cotangent, n x n, where that of x is written, -y^T dy y^T; and dy y^T.
  static constexpr int arrays = 3;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    on_square(at[0], n, [&](auto& y) {
      on_square(at[1], n, [&](auto& d) {
        on_square(at[2], n, [&](auto& product) {
          team.each(0, n, [&](int i) {
            dots<S>(
                n, n, n, [&](int j, int k) { return y(j, k); }, [&](int k) { return d(i, k); },
                [&](int j, S sum) { product(i, j) = sum; });
          });
          team.sync();
          team.each(0, n, [&](int j) {
            dots<S>(
                n, n, n, [&](int i, int k) { return y(k, i); }, [&](int k) { return product(k, j); },
                [&](int i, S sum) { d(i, j) = -sum; });
          });
          team.sync();
        });
      });
    });
  }
};

// With L and U made square by columns and rows of the identity, and F = tril(L^T dy, -1) + triu(dy U^T): P^T L^-T F
// U^-T.
struct LuBackward {
  int rows, columns;
  // L and U, rows x columns, where the cotangent of x is written; the rows of x in the order that elimination gave; and
  // the cotangent of L and U, rows x columns. Square ones may have a static size.
  static constexpr int arrays = 3;
  static constexpr bool aligned_panels = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    auto ordered = [&](int rows, int columns, const auto& d) {
      team.each(0, columns,
                [&](int j) { loop(n, 0, rows, [&](int i) { scatter(at[0], rows, at[1](i, 0), j, d(i, j)); }); });
      team.sync();
    };
    if constexpr (is_static<Size>) {
      Square<S, Size::value> y, d;
      loop(n, 0, n, [&](int i) { loop(n, 0, n, [&](int j) { y(i, j) = at[0](i, j), d(i, j) = at[2](i, j); }); });
      of_factors(team, n, n, n, y, d);
      ordered(n, n, d);
    } else {
      of_factors(team, n, rows, columns, at[0], at[2]);
      ordered(rows, columns, at[2]);
    }
  }

  // d becomes the cotangent of the rows in their order.
  template <class Team, class Size, class Factors, class Matrix>
  static BARACUDA_HD void of_factors(Team team, Size n, int rows, int columns, const Factors& y, const Matrix& d) {
    using S = typename Matrix::Number;
    const int rank = columns < rows ? columns : rows;
    team.each(0, columns, [&](int j) {
      loop(n, j + 1, rank, [&](int i) {  // of elements below the diagonal that are not written yet
        S sum = d(i, j);
        loop(n, i + 1, rows, [&](int k) { sum = sum + y(k, i) * d(k, j); });
        d(i, j) = sum;
      });
    });
    team.each(0, rows, [&](int i) {
      loop(n, i, rank, [&](int j) {  // of those that are not below it
        S sum = all<S>(0);
        loop(n, j, columns, [&](int k) { sum = sum + d(i, k) * y(j, k); });
        d(i, j) = sum;
      });
    });
    team.sync();
    if constexpr (HasPanels<Team>) {
      if (rows == columns) {
        substitute_panels<true>(team, rows, rows, ColumnsOf<Factors>{y}, d, true);
        substitute_panels<true>(team, rows, rows, RowsOf<Factors>{y}, Transposed<Matrix>{d}, false);
        return;
      }
    }
    team.each(0, columns, [&](int j) {
      loop(n, 0, rank, [&](int step) {
        int i = rank - 1 - step;
        S rest = d(i, j);
        loop(n, i + 1, rows, [&](int k) { rest = rest - y(k, i) * d(k, j); });
        d(i, j) = rest;
      });
    });
    team.sync();
    team.each(0, rows, [&](int i) {
      loop(n, 0, rank, [&](int step) {
        int j = rank - 1 - step;
        S rest = d(i, j);
        loop(n, j + 1, columns, [&](int k) { rest = rest - y(j, k) * d(i, k); });
        d(i, j) = rest / y(j, j);
      });
    });
    team.sync();
  }
};

// The gradient of a determinant: the transpose of the adjugate, which is det(x) x^-1 where x is regular. Elimination of
// the transpose, with the largest of all elements as each pivot, finds the rank: only the last pivot is 0 where that is
// n - 1, and then only the last row of det(x) U^-1, which is not divided by it, is not 0 before L^-1.
struct DetBackward {
  // x, n x n; the cotangent of its determinant; with which columns the first ones were exchanged, in order; and the
  // cotangent of x, n x n.
  static constexpr int arrays = 4;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    const View<S>&dy = at[1], &order = at[2];
    on_square(at[0], n, [&](auto& x) {
      on_square(at[3], n, [&](auto& y) {
        const Transposed<std::decay_t<decltype(x)>> a{x};
        make_identity(team, n, y);
        S sign = eliminate_by_largest(team, n, x, a, y, order);
        S product = sign * dy(0, 0);
        loop(n, 0, n - 1, [&](int j) { product = product * a(j, j); });
        const int before = n > 1 ? n - 2 : 0;
        S whole = product * a(n - 1, n - 1), second = n > 1 ? S(a(before, before)) : all<S>(1);
        auto is_low = second == all<S>(0);
        team.each(0, n, [&](int k) {
          substitute_column<false>(n, a, y, k, std::true_type{});
          loop(n, 0, n, [&](int step) {
            int i = n - 1 - step;
            S rest = y(i, k) * (step == 0 ? product : whole);
            loop(n, i + 1, n, [&](int j) { rest = rest - a(i, j) * y(j, k); });
            y(i, k) = step == 0 ? rest : rest / a(i, i);
          });
          loop(n, 0, n, [&](int i) { y(i, k) = choose(is_low, all<S>(0), y(i, k)); });
        });
        loop(n, 0, n, [&](int step) {
          int j = n - 1 - step;
          exchange(team, n, y, j, S(order(j, 0)), n);
        });
        team.sync();
      });
    });
  }

  // Eliminates a, the transpose of x, and exchanges the rows of y alike. Returns the sign of both permutations.
  template <class Team, class Size, class X, class A, class Y, class S>
  BARACUDA_HD static S eliminate_by_largest(Team team, Size n, const X& x, const A& a, const Y& y,
                                            const View<S>& order) {
    S sign = all<S>(1);
    loop(n, 0, n, [&](int j) {
      S here = all<S>(Element<S>(j));
      S row = team.first_largest(j, n, [&](int i) {
        S most = magnitude(a(i, j));
        loop(n, j + 1, n, [&](int k) { most = larger(most, magnitude(a(i, k))); });
        return most;
      });
      exchange(team, n, a, j, row, n);
      exchange(team, n, y, j, row, n);
      team.sync();
      S column = team.first_largest(j, n, [&](int k) { return magnitude(a(j, k)); });
      exchange(team, n, x, j, column, n);
      team.each(j, j + 1, [&](int) { order(j, 0) = column; });
      sign = choose(row == here, sign, -sign), sign = choose(column == here, sign, -sign);
      team.sync();
      eliminate_column(team, n, n, a, j);
    });
    return sign;
  }
};

struct SlogdetBackward {
  // x, n x n; the cotangent of the logarithm; and that of x, n x n: x^-T, as often as this says.
  static constexpr int arrays = 3;
  static constexpr bool aligned_rows = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    on_square(at[0], n, [&](auto& x) {
      on_square(at[2], n, [&](auto& y) {
        if constexpr (HasRows<Team>) {
          Elimination<Team, S> rows{team};
          rows.load_transposed(n, x);
          invert(rows, n, x, y);
        } else {
          const Transposed<std::decay_t<decltype(x)>> a{x};
          make_identity(team, n, y);
          eliminate(team, n, n, a, [&](int j, S from) { exchange(team, n, y, j, from, n); });
          substitute(team, n, n, a, y);
        }
        team.each(0, n, [&](int j) { loop(n, 0, n, [&](int i) { y(i, j) = y(i, j) * at[1](0, 0); }); });
        team.sync();
      });
    });
  }
};

}  // namespace tiny
}  // namespace baracuda
