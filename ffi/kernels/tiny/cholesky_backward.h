// The gradient of Cholesky factors (Murray, Differentiation of the Cholesky decomposition, 2016): the Hermitian part of
// L^-T phi(L^T dL) L^-1, where phi keeps what is below the diagonal and half of the diagonal.
#pragma once

#include "products.h"
#include "triangular.h"

namespace baracuda {
namespace tiny {

struct CholeskyBackward {
  bool is_upper;
  // The factor, n x n, and its cotangent, n x n, where that of x is written.
  static constexpr int arrays = 2;
  static constexpr bool aligned_panels = true;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    on_square(at[0], n, [&](auto& y) {
      on_square(at[1], n, [&](auto& d) {
        using Matrix = std::decay_t<decltype(y)>;
        if (is_upper)  // what is written is symmetric
          differentiate(team, n, Transposed<Matrix>{y}, Transposed<Matrix>{d}, RowsOf<Matrix>{y});
        else
          differentiate(team, n, y, d, ColumnsOf<Matrix>{y});
      });
    });
  }

  // With l^T also as panels.
  template <class Team, class Size, class Matrix, class Panels>
  BARACUDA_HD static void differentiate(Team team, Size n, const Matrix& l, const Matrix& d, const Panels& panels) {
    using S = typename Matrix::Number;
    const Transposed<Matrix> of_l{l}, of_d{d};
    team.each(0, n, [&](int j) {
      loop(n, 0, j, [&](int i) { d(i, j) = all<S>(0); });
      loop(n, j, n, [&](int i) {  // of elements that are not written yet
        S sum = all<S>(0);
        loop(n, i, n, [&](int k) { sum = sum + l(k, i) * d(k, j); });
        d(i, j) = i == j ? sum * all<S>(Element<S>(0.5)) : sum;
      });
      if constexpr (!HasPanels<Team>) substitute_column<true>(n, of_l, d, j, std::false_type{});
    });
    if constexpr (HasPanels<Team>) substitute_panels<true>(team, n, n, panels, d, false);
    team.sync();
    if constexpr (HasPanels<Team>)
      substitute_panels<true>(team, n, n, panels, of_d, false);
    else
      team.each(0, n, [&](int i) { substitute_column<true>(n, of_l, of_d, i, std::false_type{}); });
    team.sync();
    make_symmetric(team, n, d);
  }
};

}  // namespace tiny
}  // namespace baracuda
