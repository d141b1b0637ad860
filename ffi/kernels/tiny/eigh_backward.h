// The gradient of eigenvalues and eigenvectors: the Hermitian part of V E V^T, where E has dw on the diagonal, and
// elsewhere the elements of V^T dV divided by differences of eigenvalues.
#pragma once

#include "products.h"

namespace baracuda {
namespace tiny {

struct EighBackward {
  bool drops_equal;  // whether the terms of values that are equal up to their error are left out
  // The eigenvalues w; the vectors v, n x n; dw; dv, n x n; and the cotangent of x, n x n.
  static constexpr int arrays = 5;
  static constexpr int largest = 32;  // rows and columns

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    const View<S>&w = at[0], &dw = at[2];
    on_square(at[1], n, [&](auto& v) {
      on_square(at[3], n, [&](auto& d) {
        on_square(at[4], n, [&](auto& x) {
          S most = all<S>(0);
          loop(n, 0, n, [&](int i) { most = larger(most, magnitude(w(i, 0))); });
          const Element<S> error = 16 * int(n) * std::numeric_limits<Element<S>>::epsilon();
          S equal = drops_equal ? most * all<S>(error) : all<S>(-1);
          team.each(0, n, [&](int j) {
            dots<S>(
                n, n, n, [&](int i, int k) { return v(k, i); }, [&](int k) { return d(k, j); },
                [&](int i, S sum) {
                  S apart = w(j, 0) - w(i, 0);
                  auto is_dropped = magnitude(apart) <= equal;
                  S inverse = choose(is_dropped, all<S>(0), all<S>(1) / choose(is_dropped, all<S>(1), apart));
                  x(i, j) = i == j ? dw(i, 0) : sum * inverse;
                });
          });
          team.sync();
          team.each(0, n, [&](int j) {
            dots<S>(
                n, n, n, [&](int i, int k) { return v(i, k); }, [&](int k) { return x(k, j); },
                [&](int i, S sum) { d(i, j) = sum; });
          });
          team.sync();
          team.each(0, n, [&](int i) {
            dots<S>(
                n, n, n, [&](int j, int k) { return v(j, k); }, [&](int k) { return d(i, k); },
                [&](int j, S sum) { x(i, j) = sum; });
          });
          team.sync();
          make_symmetric(team, n, x);
        });
      });
    });
  }
};

// The gradient of eigenvalues alone: V diag(dw) V^T.
struct EigenvaluesBackward {
  // The vectors v, n x n; dw; and the cotangent of x, n x n.
  static constexpr int arrays = 3;
  static constexpr int largest = EighBackward::largest;

  template <class S, class Team, class Size>
  BARACUDA_HD void operator()(Team team, Size n, int, const View<S> (&at)[arrays]) const {
    const View<S>& dw = at[1];
    on_square(at[0], n, [&](auto& v) {
      on_square(at[2], n, [&](auto& x) {
        team.each(0, n, [&](int i) {
          dots<S>(
              n, i + 1, n, [&](int j, int k) { return v(j, k); }, [&](int k) { return v(i, k) * dw(k, 0); },
              [&](int j, S sum) { x(i, j) = sum, x(j, i) = sum; });
        });
        team.sync();
      });
    });
  }
};

}  // namespace tiny
}  // namespace baracuda
