// Substitution: solutions of triangular systems. Elements on the other side of the diagonal are not read.
#pragma once

#include "substitute_panels.h"

namespace baracuda {
namespace tiny {

// Column k of b becomes x of a x = b. With is_unit, which may be a constant, the diagonal is ones, and is not read.
template <bool is_upper, class Size, class Matrix, class Sides, class Condition>
BARACUDA_HD void substitute_column(Size n, const Matrix& a, const Sides& b, int k, Condition is_unit) {
  using S = typename Matrix::Number;
  loop(n, 0, n, [&](int step) {
    int i = is_upper ? n - 1 - step : step;
    S rest = b(i, k);
    loop(n, is_upper ? i + 1 : 0, is_upper ? int(n) : i, [&](int j) { rest = rest - a(i, j) * b(j, k); });
    b(i, k) = is_unit ? rest : rest / a(i, i);
  });
}

struct TriangularSolve {
  bool is_upper, is_transposed, is_unit;
  // a, n x n, and b, n x k, where the solution is written. A column is one member's.
  static constexpr int arrays = 2;
  static constexpr bool aligned_panels = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int k, const View<S> (&at)[arrays]) const {
    if constexpr (HasPanels<Team>) {
      const RowsOf<View<S>> rows{at[0]};
      const ColumnsOf<View<S>> columns{at[0]};
      if (is_transposed && is_upper)
        substitute_panels<false>(team, n, k, columns, at[1], is_unit);
      else if (is_transposed)
        substitute_panels<true>(team, n, k, columns, at[1], is_unit);
      else if (is_upper)
        substitute_panels<true>(team, n, k, rows, at[1], is_unit);
      else
        substitute_panels<false>(team, n, k, rows, at[1], is_unit);
      return;
    }
    on_square(at[0], n, [&](auto& a) {
      using Matrix = std::decay_t<decltype(a)>;
      auto solve = [&](auto upper, const auto& matrix) {
        team.each(0, k,
                  [&](int column) { substitute_column<decltype(upper)::value>(n, matrix, at[1], column, is_unit); });
      };
      if (is_transposed && is_upper)
        solve(std::false_type{}, Transposed<Matrix>{a});
      else if (is_transposed)
        solve(std::true_type{}, Transposed<Matrix>{a});
      else if (is_upper)
        solve(std::true_type{}, a);
      else
        solve(std::false_type{}, a);
    });
    team.sync();
  }
};

}  // namespace tiny
}  // namespace baracuda
