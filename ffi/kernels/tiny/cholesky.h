// The Cholesky factor of a Hermitian part, column by column: what a column's elements are divided by is known before
// them. A pivot that is not positive and finite makes the whole matrix NaN.
#pragma once

#include "cholesky_panels.h"
#include "cholesky_rows.h"

namespace baracuda {
namespace tiny {

struct Cholesky {
  bool is_upper;

  // Matrices: x, n x n, where the factor is written.
  static constexpr int arrays = 1;
  static constexpr bool several_rows = true;  // of a member of a team
  static constexpr bool aligned_panels = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    if constexpr (HasPanels<Team>) {
      CholeskyPanels<Team, S>{{team, at[0], n}}(is_upper);
    } else if constexpr (requires { Team::members; }) {
      CholeskyRows<Team, S>{team}(n, is_upper, at[0]);
    } else {
      on_square(at[0], n, [&](auto& a) {
        S half = all<S>(Element<S>(0.5));
        team.each(0, n, [&](int i) {  // the lower triangle has the Hermitian part; none reads what another writes
          loop(n, 0, i, [&](int j) { a(i, j) = a(i, j) * half + a(j, i) * half; });
        });
        auto is_whole = half == half;
        team.sync();
        loop(n, 0, n, [&](int j) {
          team.each(j, n, [&](int i) {
            S rest = a(i, j);
            loop(n, 0, j, [&](int k) { rest = rest - a(i, k) * a(j, k); });
            a(i, j) = rest;
          });
          team.sync();
          S pivot = a(j, j), diagonal = root(pivot);
          is_whole = is_whole & (pivot > all<S>(0)) & is_finite(pivot);
          team.sync();
          team.each(j, n, [&](int i) { a(i, j) = i == j ? diagonal : a(i, j) / diagonal; });
          team.sync();
        });
        team.each(0, n, [&](int i) {
          a(i, i) = choose(is_whole, a(i, i), not_a_number<S>());
          loop(n, 0, i, [&](int j) {
            S value = choose(is_whole, a(i, j), not_a_number<S>()), none = choose(is_whole, all<S>(0), value);
            a(i, j) = is_upper ? none : value, a(j, i) = is_upper ? value : none;
          });
        });
        team.sync();
      });
    }
  }
};

}  // namespace tiny
}  // namespace baracuda
