// Substitution by a team whose members have columns of the right sides: eight rows of these are in registers, and what
// the others give is subtracted from them, four or two at a time. Rows of matrices begin at multiples of 16 bytes, and
// have room for whole panels.
#pragma once

#include "panels.h"

namespace baracuda {
namespace tiny {

// Elements of `panel` rows of a matrix, or of its transpose, and of so many columns as a vector has.
template <class Matrix>
struct RowsOf {
  using S = typename Matrix::Number;
  const Matrix& a;
  BARACUDA_HD void load(int n, int i, int j, S (&to)[panel][vector_of<S>]) const {
    loop<true>(0, panel, [&](int p) {
      const auto some = load_vector(a, i + p < n ? i + p : n - 1, j);
      loop<true>(0, vector_of<S>, [&](int e) { to[p][e] = some.lane[e]; });
    });
  }
};
template <class Matrix>
struct ColumnsOf {
  using S = typename Matrix::Number;
  const Matrix& a;
  BARACUDA_HD void load(int n, int i, int j, S (&to)[panel][vector_of<S>]) const {
    constexpr int V = vector_of<S>;
    loop<true>(0, V, [&](int e) {
      loop<true>(0, panel / V, [&](int v) {
        const auto some = load_vector(a, j + e < n ? j + e : n - 1, i + v * V);
        loop<true>(0, V, [&](int p) { to[v * V + p][e] = some.lane[p]; });
      });
    });
  }
};

// Columns `first`, first + members, ... of b, n x k, become those of x of a x = b.
template <bool is_upper, int C, class Team, class Rows, class Sides>
BARACUDA_HD void substitute_columns(Team team, int n, int k, const Rows& a, const Sides& b, int first, bool is_unit) {
  using S = typename Sides::Number;
  constexpr int P = panel, V = vector_of<S>;
  const int own = first + team.index();
  if (own >= k) return;
  int column[C];  // one that is not there is the first one, again
  loop<true>(0, C, [&](int c) { column[c] = own + c * Team::members < k ? own + c * Team::members : own; });
  const int panels = (n + P - 1) / P;
  for (int step = 0; step < panels; ++step) {
    const int i = (is_upper ? panels - 1 - step : step) * P;
    S x[C][P], some[P][V];
    loop<true>(0, P,
               [&](int p) { loop<true>(0, C, [&](int c) { x[c][p] = b(i + p < n ? i + p : n - 1, column[c]); }); });
    for (int j = is_upper ? i + P : 0; j < (is_upper ? n : i); j += V) {
      a.load(n, i, j, some);
      loop<true>(0, V, [&](int e) {
        if (is_upper && j + e >= n) return;
        loop<true>(0, C, [&](int c) {
          const S found = b(j + e, column[c]);
          loop<true>(0, P, [&](int p) { x[c][p] = x[c][p] - some[p][e] * found; });
        });
      });
    }
    S inside[P][P];
    loop<true>(0, P / V, [&](int v) {
      a.load(n, i, i + v * V, some);
      loop<true>(0, P, [&](int p) { loop<true>(0, V, [&](int e) { inside[p][v * V + e] = some[p][e]; }); });
    });
    loop<true>(0, P, [&](int turn) {
      const int p = is_upper ? P - 1 - turn : turn;
      if (i + p >= n) return;
      loop<true>(0, C, [&](int c) { x[c][p] = is_unit ? x[c][p] : x[c][p] / inside[p][p]; });
      loop<true>(is_upper ? 0 : p + 1, is_upper ? p : P,
                 [&](int q) { loop<true>(0, C, [&](int c) { x[c][q] = x[c][q] - inside[q][p] * x[c][p]; }); });
    });
    loop<true>(0, C, [&](int c) {
      if (c > 0 && column[c] == own) return;
      loop<true>(0, P, [&](int p) {
        if (i + p < n) b(i + p, column[c]) = x[c][p];
      });
    });
  }
}

template <bool is_upper, class Team, class Rows, class Sides>
BARACUDA_HD void substitute_panels(Team team, int n, int k, const Rows& a, const Sides& b, bool is_unit) {
  int first = 0;
  for (; k - first > Team::members; first += 2 * Team::members)
    substitute_columns<is_upper, 2>(team, n, k, a, b, first, is_unit);
  if (first < k) substitute_columns<is_upper, 1>(team, n, k, a, b, first, is_unit);
  team.sync();
}

}  // namespace tiny
}  // namespace baracuda
