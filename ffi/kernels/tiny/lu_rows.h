// Elimination with partial pivoting by a team whose members have a row each, in registers. Rows are not exchanged but
// numbered: `position` is where exchanges would have brought a row, so that pivots and ties are those of
// tiny::eliminate. What members exchange is the row of the pivot, element by element. For several right sides L and U
// are then in memory, in order, and a member has columns.
//
// Besides what other functors ask of a team, it has
//   members                         a static number, at least the matrix's size
//   index()                         which of the members this is
//   from(x, i)                      x of member i; all members ask
//   first_of_largest(x, position)   the member that has the largest x, of several the one with the smallest position;
//                                   none is NaN, and the largest is not negative
// Rows of matrices begin at multiples of 16 bytes, and have room for N columns (`aligned_rows` of a functor).
#pragma once

#include "panels.h"

namespace baracuda {
namespace tiny {

template <class Team, class S>
struct LuRows {
  static constexpr int N = Team::members, V = vector_of<S>;

  Team team;
  S a[N];
  int position;    // -1 of a member that has none of the matrix's, whose row is never a pivot
  int holder = 0;  // the member that has the row at the position that is this one's number

  BARACUDA_HD int row() const { return team.index(); }
  BARACUDA_HD bool is_row() const { return position >= 0; }
  // body(row, position)
  template <class Body>
  BARACUDA_HD void each_row(const Body& body) const {
    if (is_row()) body(row(), position);
  }

  // Columns that are not there are zeros, and rows those of the identity.
  BARACUDA_HD void load(int rows, int columns, const View<S>& x) {
    position = row() < rows ? row() : -1;
    const int known = is_row() ? row() : rows - 1;
    loop<true>(0, N / V, [&](int v) {
      const auto some = load_vector(x, known, v * V);
      loop<true>(0, V, [&](int e) {
        const int j = v * V + e;
        const S value = some.lane[e];
        a[j] = row() >= rows ? S(row() == j) : j < columns ? value : S(0);
      });
    });
    team.sync();
  }
  BARACUDA_HD void load_transposed(int n, const View<S>& x) {
    position = row() < n ? row() : -1;
    const int column = is_row() ? row() : n - 1;
    loop<true>(0, N, [&](int j) {
      S value = x(j < n ? j : n - 1, column);
      a[j] = row() < n && j < n ? value : S(row() == j);
    });
    team.sync();
  }

  // L and U by rows in their order, with zeros where columns are not there.
  BARACUDA_HD void store(int columns, const View<S>& y) const {
    if (is_row())
      loop<true>(0, N / V, [&](int v) {
        SomeOf<S> some;
        loop<true>(0, V, [&](int e) { some.lane[e] = v * V + e < columns ? a[v * V + e] : S(0); });
        store_vector(y, position, v * V, some);
      });
    team.sync();
  }

  // The first `steps` columns. exchanged(j, from, pivot) is called for each. `right` has a member's elements of right
  // sides, which become those of L^-1.
  template <int sides, class Exchanged>
  BARACUDA_HD void factor(int steps, S (&right)[sides ? sides : 1], const Exchanged& exchanged) {
    loop<true>(0, N, [&](int j) {
      if (j >= steps) return;
      // NaN is the largest where it is the first, and smaller than all others elsewhere.
      const S here = a[j];
      S size = fmax(fabs(here), S(-1));
      size = position == j && !(here == here) ? std::numeric_limits<S>::infinity() : size;
      const int member = team.first_of_largest(position < j ? S(-1) : size, position);
      const int from = team.from(position, member);
      S found[N], found_right[sides ? sides : 1];
      loop<true>(j, N, [&](int k) { found[k] = team.from(a[k], member); });
      loop<true>(0, sides, [&](int k) { found_right[k] = team.from(right[k], member); });
      const S pivot = found[j];
      exchanged(j, from, pivot);
      position = position == j ? from : position;
      if (team.index() == member) position = j;
      if (team.index() == j) holder = member;
      const bool is_left = position > j;
      // Without a pivot factors are what is there, zeros. A quotient of 0 takes much longer than others.
      const S divisor = pivot == 0 ? S(1) : pivot, factor = (is_left ? here : divisor) / divisor;
      if (is_left) {
        a[j] = factor;
        loop<true>(j + 1, N, [&](int k) { a[k] = a[k] - factor * found[k]; });
        loop<true>(0, sides, [&](int k) { right[k] = right[k] - factor * found_right[k]; });
      }
    });
  }
  template <class Exchanged>
  BARACUDA_HD void factor(int steps, const Exchanged& exchanged) {
    S none[1];
    factor<0>(steps, none, exchanged);
  }

  // Solves for one right side, n x 1, which becomes the solution.
  BARACUDA_HD void solve_one(int n, const View<S>& y) {
    S right[1] = {is_row() ? y(row(), 0) : S(0)};
    factor<1>(n, right, [](int, int, S) {});
    S& x = right[0];
    loop<true>(0, N, [&](int step) {
      const int j = N - 1 - step;
      if (j >= n) return;
      const bool is_own = position == j;
      const S above = x, below = a[j];  // values: a choice of what is in memory would keep all of it there
      const S own = (is_own ? above : S(1)) / (is_own ? below : S(1));
      const S found = team.from(own, team.from(holder, j));
      x = is_own ? own : position < j ? above - below * found : above;
    });
    if (is_row()) y(position, 0) = x;
    team.sync();
  }

  // Rows of y, n x k, are exchanged as those of the matrix were.
  BARACUDA_HD void exchange_rows(int k, const View<S>& y) const {
    for (int first = 0; first < k; first += V) {
      SomeOf<S> some;
      if (is_row()) some = load_vector(y, row(), first);
      team.sync();
      if (is_row()) store_vector(y, position, first, some);
    }
    team.sync();
  }

  // The identity, whose rows are exchanged as those of the matrix were.
  BARACUDA_HD void store_identity(int n, const View<S>& y) const {
    if (is_row())  // by `each_row` the inverse takes up to a tenth longer
      for (int first = 0; first < n; first += V) store_vector(y, position, first, unit_vector<S>(row(), first));
    team.sync();
  }

  // y, n x k, becomes x of L U x = y, where `factors` has what `store` wrote.
  BARACUDA_HD void substitute_factors(int n, int k, const View<S>& factors, const View<S>& y) const {
    for (int first = 0; first < k; first += N) {
      const int column = first + team.index(), known = column < k ? column : k - 1;
      S x[N];
      loop<true>(0, N, [&](int i) { x[i] = i < n ? y(i, known) : S(0); });
      loop<true>(0, N, [&](int i) {
        if (i >= n) return;
        loop<true>(0, N / V, [&](int v) {
          if (v * V >= i) return;
          const auto some = load_vector(factors, i, v * V);
          loop<true>(0, V, [&](int e) {
            const int j = v * V + e;
            if (j < i) x[i] = x[i] - some.lane[e] * x[j];
          });
        });
      });
      loop<true>(0, N, [&](int step) {
        const int i = N - 1 - step;
        if (i >= n) return;
        S pivot;
        loop<true>(0, N / V, [&](int v) {
          if (v * V + V <= i) return;
          const auto some = load_vector(factors, i, v * V);
          loop<true>(0, V, [&](int e) {
            const int j = v * V + e;
            if (j == i) pivot = some.lane[e];
            if (j > i) x[i] = x[i] - some.lane[e] * x[j];
          });
        });
        x[i] = x[i] / pivot;
      });
      loop<true>(0, N, [&](int i) {
        if (i < n && column < k) y(i, column) = x[i];
      });
    }
    team.sync();
  }
};

}  // namespace tiny
}  // namespace baracuda
