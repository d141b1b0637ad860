// Elimination with partial pivoting by a team whose members have several rows each, in memory, and eight columns of
// them at a time in registers: those of a panel are eliminated there, and then all columns after it at once. Rows are
// not exchanged but numbered, as by LuRows, which has the same functions and asks the same of a team, except that
//   members times rows   is at least the number of rows
// Rows of matrices begin at multiples of 16 bytes, and have room for whole panels (`aligned_rows` of a functor).
#pragma once

#include "substitute_panels.h"

namespace baracuda {
namespace tiny {

template <class Team, class S>
struct LuPanels : PanelRows<Team, S> {
  using Base = PanelRows<Team, S>;
  using Base::M, Base::R, Base::P, Base::V, Base::team, Base::x, Base::rows, Base::row, Base::has, Base::known_row;

  int columns = 0;
  int position[R];  // -1 where there is no such row, which is never a pivot
  int holder[R];    // the row at the position of this number

  BARACUDA_HD void load(int rows, int columns, const View<S>& x) {
    this->rows = rows, this->columns = columns, this->x = x;
    loop<true>(0, R, [&](int r) { position[r] = has(r) ? row(r) : -1, holder[r] = 0; });
    team.sync();
  }
  BARACUDA_HD void load_transposed(int n, const View<S>& x) {
    team.each(0, n, [&](int i) {
      for (int j = 0; j < i; ++j) {
        const S here = x(i, j), there = x(j, i);
        x(i, j) = there, x(j, i) = here;
      }
    });
    load(n, n, x);
  }

  // body(row, position)
  template <class Body>
  BARACUDA_HD void each_row(const Body& body) const {
    loop<true>(0, R, [&](int r) {
      if (position[r] >= 0) body(row(r), position[r]);
    });
  }

  BARACUDA_HD void load_panel(int first, S (&a)[R][P]) const {
    loop<true>(0, R, [&](int r) {
      loop<true>(0, P, [&](int k) { a[r][k] = 0; });
      if (has(r)) load_row(x, row(r), first, a[r]);  // another's row may be written by then
    });
  }
  BARACUDA_HD void store_panel(int first, const S (&a)[R][P]) const {
    loop<true>(0, R, [&](int r) {
      if (has(r)) store_row(x, row(r), first, a[r]);
    });
    team.sync();
  }

  // The first `steps` columns. exchanged(j, from, pivot) is called for each. `right` has the elements of a right side
  // of a member's rows, which become those of L^-1.
  template <bool has_right, class Exchanged>
  BARACUDA_HD void factor(int steps, S (&right)[R], const Exchanged& exchanged) {
    for (int first = 0; first < steps; first += P) {
      S a[R][P];
      int chosen[P];  // rows
      load_panel(first, a);
      loop<true>(0, P, [&](int p) {
        chosen[p] = 0;
        if (first + p < steps) chosen[p] = eliminate_column<has_right>(first + p, p, a, right, exchanged);
      });
      store_panel(first, a);
      if (first + P < columns) eliminate_after(first, steps, a, chosen);
    }
  }
  template <class Exchanged>
  BARACUDA_HD void factor(int steps, const Exchanged& exchanged) {
    S none[R] = {};
    factor<false>(steps, none, exchanged);
  }

  // Column j, which is column p of the panel. Returns the row of the pivot.
  template <bool has_right, class Exchanged>
  BARACUDA_HD int eliminate_column(int j, int p, S (&a)[R][P], S (&right)[R], const Exchanged& exchanged) {
    // NaN is the largest where it is the first, and smaller than all others elsewhere.
    S most = 0;
    int at = 0, best = 0;
    loop<true>(0, R, [&](int r) {
      const S here = a[r][p];
      S size = fmax(fabs(here), S(-1));
      size = position[r] == j && !(here == here) ? std::numeric_limits<S>::infinity() : size;
      size = position[r] < j ? S(-1) : size;
      const bool is_better = r == 0 || size > most || (size == most && position[r] < at);
      most = is_better ? size : most, at = is_better ? position[r] : at, best = is_better ? r : best;
    });
    const int member = team.first_of_largest(most, at), from = team.from(at, member);
    const int of_pivot = team.from(best, member) * M + member;
    S found[P], found_right = 0;
    loop<true>(p, P, [&](int k) { found[k] = team.from(one_of<R>(best, [&](int r) { return a[r][k]; }), member); });
    if (has_right) found_right = team.from(one_of<R>(best, [&](int r) { return right[r]; }), member);
    const S pivot = found[p];
    exchanged(j, from, pivot);
    loop<true>(0, R, [&](int r) {
      position[r] = position[r] == j ? from : position[r];
      position[r] = row(r) == of_pivot ? j : position[r];
      holder[r] = row(r) == j ? of_pivot : holder[r];
      const bool is_left = position[r] > j;
      // Without a pivot factors are what is there, zeros. A quotient of 0 takes much longer than others.
      const S here = a[r][p], divisor = pivot == 0 ? S(1) : pivot, factor = (is_left ? here : divisor) / divisor;
      if (is_left) {
        a[r][p] = factor;
        loop<true>(p + 1, P, [&](int k) { a[r][k] = a[r][k] - factor * found[k]; });
        if (has_right) right[r] = right[r] - factor * found_right;
      }
    });
    return of_pivot;
  }

  // Columns after the panel: first of U, then of the rows that are left.
  BARACUDA_HD void eliminate_after(int first, int steps, const S (&a)[R][P], const int (&chosen)[P]) {
    const int begin = first + P;
    for (int c = begin + team.index(); c < columns; c += M) {
      S u[P];
      loop<true>(0, P, [&](int p) {
        u[p] = x(chosen[p], c);
        loop<true>(0, (p + V - 1) / V, [&](int v) {
          const auto some = load_vector(x, chosen[p], first + v * V);
          loop<true>(v * V, v * V + V, [&](int q) {
            if (q < p) u[p] = u[p] - some.lane[q - v * V] * u[q];
          });
        });
        if (p > 0 && first + p < steps) x(chosen[p], c) = u[p];
      });
    }
    team.sync();
    for (int c = begin; c < columns; c += V) {
      SomeOf<S> u[P], some[R];
      loop<true>(0, P, [&](int p) { u[p] = load_vector(x, chosen[p], c); });
      loop<true>(0, R, [&](int r) {
        some[r] = {};
        if (has(r)) some[r] = load_vector(x, row(r), c);
        loop<true>(0, P, [&](int p) {
          loop<true>(0, V, [&](int e) { some[r].lane[e] = some[r].lane[e] - a[r][p] * u[p].lane[e]; });
        });
        if (position[r] >= begin) store_vector(x, row(r), c, some[r]);
      });
    }
    team.sync();
  }

  // Rows of y, of so many columns, go to their positions.
  BARACUDA_HD void exchange_rows(int columns, const View<S>& y) const {
    for (int first = 0; first < columns; first += V) {
      SomeOf<S> some[R];
      loop<true>(0, R, [&](int r) { some[r] = load_vector(y, known_row(r), first); });
      team.sync();
      loop<true>(0, R, [&](int r) {
        if (position[r] >= 0) store_vector(y, position[r], first, some[r]);
      });
    }
    team.sync();
  }

  // L and U by rows in their order.
  BARACUDA_HD void store(int columns, const View<S>& y) const { exchange_rows(columns, y); }

  // Solves for one right side, n x 1, which becomes the solution.
  BARACUDA_HD void solve_one(int n, const View<S>& y) {
    S right[R];
    loop<true>(0, R, [&](int r) { right[r] = y(known_row(r), 0); });
    factor<true>(n, right, [](int, int, S) {});
    for (int first = (n - 1) / P * P; first >= 0; first -= P) {
      S a[R][P];
      load_panel(first, a);
      loop<true>(0, P, [&](int step) {
        const int p = P - 1 - step, j = first + p;
        if (j >= n) return;
        const int held = team.from(one_of<R>(j / M, [&](int r) { return holder[r]; }), j % M), of_pivot = held / M;
        const S above = one_of<R>(of_pivot, [&](int r) { return right[r]; });
        const S below = one_of<R>(of_pivot, [&](int r) { return a[r][p]; });
        const bool is_own = team.index() == held % M;
        const S found = team.from((is_own ? above : S(1)) / (is_own ? below : S(1)), held % M);
        loop<true>(0, R, [&](int r) {
          const S here = right[r];
          right[r] = row(r) == held ? found : position[r] < j ? here - a[r][p] * found : here;
        });
      });
    }
    loop<true>(0, R, [&](int r) {
      if (position[r] >= 0) y(position[r], 0) = right[r];
    });
    team.sync();
  }

  // The identity, whose rows are exchanged as those of the matrix were.
  BARACUDA_HD void store_identity(int n, const View<S>& y) const {
    each_row([&](int row, int position) {
      for (int first = 0; first < n; first += V) store_vector(y, position, first, unit_vector<S>(row, first));
    });
    team.sync();
  }

  // y, n x k, becomes x of L U x = y, where `factors` has what `store` wrote.
  BARACUDA_HD void substitute_factors(int n, int k, const View<S>& factors, const View<S>& y) const {
    substitute_panels<false>(team, n, k, RowsOf<View<S>>{factors}, y, true);
    substitute_panels<true>(team, n, k, RowsOf<View<S>>{factors}, y, false);
  }
};

}  // namespace tiny
}  // namespace baracuda
