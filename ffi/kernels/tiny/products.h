// Products of matrices, of which a row or a column is one member's.
#pragma once

#include "matrix.h"

namespace baracuda {
namespace tiny {

// to(i, sum of left(i, k) * right(k) over k < inner) for i < rows. Each sum is in the order of k; four of them at a
// time read right(k) once.
template <class S, class Size, class Left, class Right, class To>
BARACUDA_HD void dots(Size n, int rows, int inner, const Left& left, const Right& right, const To& to) {
  auto one = [&](int i) {
    S sum = all<S>(0);
    loop(n, 0, inner, [&](int k) { sum = sum + left(i, k) * right(k); });
    to(i, sum);
  };
  if constexpr (is_static<Size>) {
    loop(n, 0, rows, one);
  } else {
    int i = 0;
    for (; i + 4 <= rows; i += 4) {
      S first = all<S>(0), second = first, third = first, fourth = first;
      for (int k = 0; k < inner; ++k) {
        S factor = right(k);
        first = first + left(i, k) * factor, second = second + left(i + 1, k) * factor;
        third = third + left(i + 2, k) * factor, fourth = fourth + left(i + 3, k) * factor;
      }
      to(i, first), to(i + 1, second), to(i + 2, third), to(i + 3, fourth);
    }
    for (; i < rows; ++i) one(i);
  }
}

// x becomes its Hermitian part.
template <class Team, class Size, class Matrix>
BARACUDA_HD void make_symmetric(Team team, Size n, const Matrix& x) {
  using S = typename Matrix::Number;
  S half = all<S>(Element<S>(0.5));
  team.each(0, n, [&](int i) {  // none reads what another writes
    loop(n, 0, i, [&](int j) {
      S both = x(i, j) * half + x(j, i) * half;
      x(i, j) = both, x(j, i) = both;
    });
  });
  team.sync();
}

}  // namespace tiny
}  // namespace baracuda
