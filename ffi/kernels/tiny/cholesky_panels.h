// The Cholesky factor by a team whose members have several rows each, in memory, and eight columns of them at a time in
// registers: from those of a panel what all columns before it give is subtracted at once. As for LuPanels, rows begin
// at multiples of 16 bytes, and have room for whole panels.
#pragma once

#include "panels.h"

namespace baracuda {
namespace tiny {

template <class Team, class S>
struct CholeskyPanels : PanelRows<Team, S> {
  using Base = PanelRows<Team, S>;
  using Base::M, Base::R, Base::P, Base::V, Base::team, Base::x, Base::rows, Base::row, Base::has, Base::known_row;

  bool is_whole = true;

  // x becomes the factor of its Hermitian part.
  BARACUDA_HD void operator()(bool is_upper) {
    for (int first = 0; first < rows; first += P) {
      S a[R][P];
      load(first, a);
      team.sync();
      subtract(first, a);
      loop<true>(0, P, [&](int p) {
        if (first + p < rows) factor_column(first, p, a);
      });
      loop<true>(0, R, [&](int r) {
        if (row(r) >= first && has(r)) store_row(x, row(r), first, a[r]);
      });
      team.sync();
    }
    if (is_upper) {
      each_vector([&](int i, int j) {
        const auto some = load_vector(x, i, j);
        loop<true>(0, V, [&](int e) {
          if (j + e < i) x(j + e, i) = some.lane[e];
        });
      });
    }
    each_vector([&](int i, int j) {
      auto some = load_vector(x, i, j);
      loop<true>(0, V, [&](int e) {
        const S value = some.lane[e], found = (is_upper ? j + e < i : j + e > i) ? S(0) : value;
        some.lane[e] = is_whole ? found : not_a_number<S>();
      });
      store_vector(x, i, j, some);
    });
  }

  // body(i, j) for each vector of a member's rows.
  template <class Body>
  BARACUDA_HD void each_vector(const Body& body) const {
    for (int j = 0; j < rows; j += V)
      loop<true>(0, R, [&](int r) {
        if (has(r)) body(row(r), j);
      });
    team.sync();
  }

  // Columns of the Hermitian part, of which the upper triangle stays as it is.
  BARACUDA_HD void load(int first, S (&a)[R][P]) const {
    loop<true>(0, R, [&](int r) {
      const int i = known_row(r);
      load_row(x, i, first, a[r]);
      loop<true>(0, P, [&](int p) {
        const int j = first + p < rows ? first + p : rows - 1;
        const S here = a[r][p], there = x(j, i);
        a[r][p] = i == j ? here : here * S(0.5) + there * S(0.5);
      });
    });
  }

  BARACUDA_HD void subtract(int first, S (&a)[R][P]) const {
    for (int j = 0; j < first; j += V) {
      SomeOf<S> own[R];
      loop<true>(0, R, [&](int r) { own[r] = load_vector(x, known_row(r), j); });
      loop<true>(0, P, [&](int p) {
        const auto other = load_vector(x, first + p < rows ? first + p : rows - 1, j);
        loop<true>(
            0, R, [&](int r) { loop<true>(0, V, [&](int e) { a[r][p] = a[r][p] - own[r].lane[e] * other.lane[e]; }); });
      });
    }
  }

  BARACUDA_HD void factor_column(int first, int p, S (&a)[R][P]) {
    const int j = first + p;
    const S pivot = team.from(one_of<R>(j / M, [&](int r) { return a[r][p]; }), j % M);
    const S inverse = inverse_root(pivot), diagonal = root(pivot);
    is_whole = is_whole && pivot > 0 && is_finite(pivot);
    S column[R];
    loop<true>(0, R, [&](int r) {
      column[r] = a[r][p] * inverse;
      a[r][p] = row(r) == j ? diagonal : column[r];
    });
    loop<true>(p + 1, P, [&](int q) {
      const int k = first + q;
      const S other = team.from(one_of<R>(k / M, [&](int r) { return column[r]; }), k % M);
      loop<true>(0, R, [&](int r) { a[r][q] = a[r][q] - column[r] * other; });
    });
  }
};

}  // namespace tiny
}  // namespace baracuda
