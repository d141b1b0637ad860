// Elimination with partial pivoting, and what follows from it: linear systems, inverses and determinants. Of the
// elements of a column with the same largest magnitude the first is the pivot, as in LAPACK.
#pragma once

#include "lu_panels.h"
#include "lu_rows.h"
#include "triangular.h"

namespace baracuda {
namespace tiny {

// Row j is subtracted from those after it, so that column j becomes zeros there; instead of these it has the factors. A
// column without a pivot is left as it is, zeros.
template <class Team, class Size, class Matrix>
BARACUDA_HD void eliminate_column(Team team, Size rows, int columns, const Matrix& a, int j) {
  using S = typename Matrix::Number;
  S pivot = a(j, j);
  auto is_zero = pivot == all<S>(0);
  team.each(j + 1, rows, [&](int i) {
    S factor = choose(is_zero, a(i, j), a(i, j) / pivot);
    a(i, j) = factor;
    loop(rows, j + 1, columns, [&](int k) { a(i, k) = a(i, k) - factor * a(j, k); });
  });
  team.sync();
}

// a becomes U on and above the diagonal, and below it L, of which the diagonal of ones is not stored. exchanged(j,
// from) says that row j was exchanged with row `from`, for each j in order.
template <class Team, class Size, class Matrix, class Exchanged>
BARACUDA_HD void eliminate(Team team, Size rows, int columns, const Matrix& a, const Exchanged& exchanged) {
  using S = typename Matrix::Number;
  loop(rows, 0, columns < rows ? columns : int(rows), [&](int j) {
    S from = team.first_largest(j, rows, [&](int i) { return magnitude(a(i, j)); });
    exchange(team, rows, a, j, from, columns);
    exchanged(j, from);
    team.sync();
    eliminate_column(team, rows, columns, a, j);
  });
}

// b becomes x of L U x = b. A column is one member's.
template <class Team, class Size, class Columns, class Matrix, class Sides>
BARACUDA_HD void substitute(Team team, Size n, Columns columns, const Matrix& a, const Sides& b) {
  team.each(0, columns, [&](int k) {
    substitute_column<false>(n, a, b, k, std::true_type{});
    substitute_column<true>(n, a, b, k, std::false_type{});
  });
  team.sync();
}

// A team whose members have rows in registers.
template <class Team>
concept HasRows = requires { Team::members; };
template <class Team, class S>
using Elimination = std::conditional_t<HasPanels<Team>, LuPanels<Team, S>, LuRows<Team, S>>;

// y, n x k, becomes x of a x = y, where a is what was loaded, and `memory` is n x n of it.
template <class Rows, class S>
BARACUDA_HD void solve(Rows& rows, int n, int k, const View<S>& memory, const View<S>& y) {
  if (k == 1) {
    rows.solve_one(n, y);
    return;
  }
  rows.factor(n, [](int, int, S) {});
  rows.store(n, memory);
  rows.exchange_rows(k, y);
  rows.substitute_factors(n, k, memory, y);
}
// The same for the identity.
template <class Rows, class S>
BARACUDA_HD void invert(Rows& rows, int n, const View<S>& memory, const View<S>& y) {
  rows.factor(n, [](int, int, S) {});
  rows.store(n, memory);
  rows.store_identity(n, y);
  rows.substitute_factors(n, n, memory, y);
}

struct Solve {
  // a, n x n, and b, n x k, where the solution is written.
  static constexpr int arrays = 2;
  static constexpr bool aligned_rows = true;  // in a team's memory

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int k, const View<S> (&at)[arrays]) const {
    const View<S>& b = at[1];
    if constexpr (HasRows<Team>) {
      Elimination<Team, S> rows{team};
      rows.load(n, n, at[0]);
      solve(rows, n, k, at[0], b);
    } else {
      on_square(at[0], n, [&](auto& a) {
        eliminate(team, n, n, a, [&](int j, S from) { exchange(team, n, b, j, from, k); });
        substitute(team, n, k, a, b);
      });
    }
  }
};

struct Inverse {
  // x, n x n, and y, n x n.
  static constexpr int arrays = 2;
  static constexpr bool aligned_rows = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    if constexpr (HasRows<Team>) {
      Elimination<Team, S> rows{team};
      rows.load(n, n, at[0]);
      invert(rows, n, at[0], at[1]);
    } else {
      on_square(at[0], n, [&](auto& a) {
        on_square(at[1], n, [&](auto& y) {
          team.each(0, n, [&](int j) { loop(n, 0, n, [&](int i) { y(i, j) = all<S>(i == j); }); });
          team.sync();
          eliminate(team, n, n, a, [&](int j, S from) { exchange(team, n, y, j, from, n); });
          substitute(team, n, n, a, y);
        });
      });
    }
  }
};

struct Lu {
  int rows, columns;
  // x, rows x columns, which becomes L and U; with which rows the first ones were exchanged, in order; and the rows of
  // x in the order that this gave. A square x may have a static size.
  static constexpr int arrays = 3;
  static constexpr bool aligned_rows = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    if constexpr (HasRows<Team>) {
      Elimination<Team, S> found{team};
      found.load(rows, columns, at[0]);
      found.factor(columns < rows ? columns : rows, [&](int j, int from, S) {
        if (team.index() == 0) at[1](j, 0) = S(from);
      });
      found.each_row([&](int row, int position) { at[2](position, 0) = S(row); });
      found.store(columns, at[0]);
    } else if constexpr (is_static<Size>) {
      Square<S, Size::value> order;  // of which a column is used
      on_square(at[0], n, [&](auto& a) { factor(team, n, n, a, at[1], order); });
      team.each(0, n, [&](int i) { at[2](i, 0) = order(i, 0); });
    } else {
      factor(team, rows, columns, at[0], at[1], at[2]);
    }
  }

  template <class S, class Team, class Size, class Matrix, class Order>
  static BARACUDA_HD void factor(Team team, Size rows, int columns, const Matrix& a, const View<S>& pivots,
                                 const Order& order) {
    team.each(0, rows, [&](int i) { order(i, 0) = all<S>(Element<S>(i)); });
    team.sync();
    eliminate(team, rows, columns, a, [&](int j, S from) {
      team.each(j, j + 1, [&](int) { pivots(j, 0) = from; });
      exchange(team, rows, order, j, from, 1);
    });
  }
};

struct Determinant {
  // x, n x n; and its determinant, the product of the diagonal of U in its order, and of the sign of the permutation.
  static constexpr int arrays = 2;
  static constexpr bool aligned_rows = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    if constexpr (HasRows<Team>) {
      Elimination<Team, S> rows{team};
      rows.load(n, n, at[0]);
      S y = 1, sign = 1;
      rows.factor(n, [&](int j, int from, S pivot) { sign = from == j ? sign : -sign, y = y * pivot; });
      if (team.index() == 0) at[1](0, 0) = y * sign;
    } else {
      on_square(at[0], n, [&](auto& a) {
        S sign = all<S>(1);
        eliminate(team, n, n, a, [&](int j, S from) { sign = choose(from == all<S>(Element<S>(j)), sign, -sign); });
        team.each(0, 1, [&](int) {
          S y = all<S>(1);
          loop(n, 0, n, [&](int i) { y = y * a(i, i); });
          at[1](0, 0) = y * sign;
        });
      });
    }
  }
};

struct Diagonal {
  // x, n x n; the diagonal of U; and the sign of the permutation: the determinant is the product of both.
  static constexpr int arrays = 3;
  static constexpr bool aligned_rows = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    if constexpr (HasRows<Team>) {
      Elimination<Team, S> rows{team};
      rows.load(n, n, at[0]);
      S sign = 1;
      rows.factor(n, [&](int j, int from, S pivot) {
        sign = from == j ? sign : -sign;
        if (team.index() == 0) at[1](j, 0) = pivot;
      });
      if (team.index() == 0) at[2](0, 0) = sign;
    } else {
      on_square(at[0], n, [&](auto& a) {
        S sign = all<S>(1);
        eliminate(team, n, n, a, [&](int j, S from) { sign = choose(from == all<S>(Element<S>(j)), sign, -sign); });
        team.each(0, n, [&](int i) { at[1](i, 0) = a(i, i); });
        team.each(0, 1, [&](int) { at[2](0, 0) = sign; });
      });
    }
  }
};

}  // namespace tiny
}  // namespace baracuda
