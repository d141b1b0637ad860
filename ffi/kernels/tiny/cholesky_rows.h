// The Cholesky factor by a team whose members have rows of the lower triangle in registers, as many rows apart as there
// are members: so each has short rows and long ones, and what members exchange serves several rows of each. What a
// column gives is subtracted from all after it.
//
// Besides what other functors ask of a team, it has
//   members           a static number
//   rows              how many rows a member has, a static number; members times rows is at least the matrix's size
//   index()           which of the members this is
//   from(x, i)        x of member i; all members ask
#pragma once

#include "matrix.h"

namespace baracuda {
namespace tiny {

template <class Team, class S>
struct CholeskyRows {
  static constexpr int M = Team::members, blocks = Team::rows, N = M * blocks;

  Team team;
  S a[blocks][N];  // row b * M + index, up to column (b + 1) * M, of which those after the diagonal are of no use
  bool is_whole = true;

  BARACUDA_HD int row(int b) const { return b * M + team.index(); }

  // x becomes the factor of its Hermitian part.
  BARACUDA_HD void operator()(int n, bool is_upper, const View<S>& x) {
    using Known = std::integral_constant<int, N>;
    const View<S> whole{x.data, N + 1};  // of which the compiler knows all offsets
    const bool is_whole_view = n == N && x.row_step == N + 1;
    if (is_whole_view)
      load(Known{}, whole);
    else
      load(n, x);
    team.sync();
    factor();
    if (is_whole_view && is_upper)
      store(Known{}, Transposed<View<S>>{whole});
    else if (is_whole_view)
      store(Known{}, whole);
    else if (is_upper)
      store(n, Transposed<View<S>>{x});
    else
      store(n, x);
    team.sync();
  }

  // Rows and columns from n on are those of the identity.
  template <class Size>
  BARACUDA_HD void load(Size n, const View<S>& x) {
    loop<true>(0, blocks, [&](int b) {
      const int i = row(b), last = n - 1, of_row = i < last ? i : last;
      loop<true>(0, (b + 1) * M, [&](int j) {
        int column = j < last ? j : last;  // without branches
        S here = x(of_row, column), there = x(column, of_row), found = here * S(0.5) + there * S(0.5);
        if (j >= b * M) found = i == j ? here : found;
        a[b][j] = i < n && j < n ? found : S(i == j);
      });
    });
  }

  // The diagonal has the pivots.
  BARACUDA_HD void factor() {
    loop<true>(0, N, [&](int j) {
      S pivot = team.from(a[j / M][j], j % M), inverse = inverse_root(pivot);
      is_whole = is_whole && pivot > 0 && is_finite(pivot);
      S column[blocks];
      loop<true>(j / M, blocks, [&](int b) {
        column[b] = a[b][j] * inverse;
        a[b][j] = row(b) == j ? pivot : column[b];
      });
      loop<true>(j + 1, N, [&](int k) {
        S other = team.from(column[k / M], k % M);
        loop<true>(k / M, blocks, [&](int b) { a[b][k] = a[b][k] - column[b] * other; });
      });
    });
  }

  template <class Size, class Matrix>
  BARACUDA_HD void store(Size n, const Matrix& y) const {
    const S none = is_whole ? S(0) : not_a_number<S>();
    loop<true>(0, blocks, [&](int b) {
      const int i = row(b);
      S pivot = 0;
      loop<true>(b * M, (b + 1) * M, [&](int j) { pivot = i == j ? a[b][j] : pivot; });
      const S diagonal = root(pivot) + none;
      if (i < n)
        loop<true>(0, N, [&](int j) {
          S value = none;
          if (j < b * M)
            value = is_whole ? a[b][j] : none;
          else if (j < (b + 1) * M)
            value = i == j ? diagonal : i > j && is_whole ? a[b][j] : none;
          if (j < n) y(i, j) = value;
        });
    });
  }
};

}  // namespace tiny
}  // namespace baracuda
