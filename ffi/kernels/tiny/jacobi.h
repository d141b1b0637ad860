// What Jacobi's rotations of eigenvalues and of singular values share. A sweep rotates every pair once, in steps of
// disjoint pairs (the order of a round-robin tournament; Brent and Luk, 1985), so that the members of a team do a step
// together. What is negligible is not rotated: after a sweep without rotations further ones change no bit, and end.
#pragma once

#include "matrix.h"

namespace baracuda {
namespace tiny {

// Usual matrices need five to nine. What has not converged becomes NaN.
template <class T>
inline constexpr int most_sweeps = sizeof(T) == 8 ? 24 : 20;

// The pairs of one step: each of n numbers is in one of them, except the number that has a bye where n is odd.
template <class Size>
struct Pairs {
  Size n;
  int step;
  BARACUDA_HD static int count(int n) { return n / 2; }
  BARACUDA_HD static int steps(int n) { return n + n % 2 - 1; }
  BARACUDA_HD int bye() const { return step; }
  // In the first pair of an even n the last number meets all others in turn.
  BARACUDA_HD int one(int k) const {
    if (n % 2 == 0 && k == 0) return n - 1;
    int distance = k + n % 2, found = step + distance;
    return found < steps(n) ? found : found - steps(n);
  }
  BARACUDA_HD int other(int k) const {
    int distance = k + n % 2, found = step - distance;
    return found < 0 ? found + steps(n) : found;
  }
  BARACUDA_HD int low(int k) const { return one(k) < other(k) ? one(k) : other(k); }
  BARACUDA_HD int high(int k) const { return one(k) < other(k) ? other(k) : one(k); }
};

// The power of two of the largest of n numbers, or NaN where one is not finite.
template <class Size, class S>
BARACUDA_HD S power_of_largest(Size n, const View<S>& numbers) {
  S most = numbers(0, 0);
  loop(n, 1, n, [&](int j) {
    S other = numbers(j, 0);
    most = choose(is_finite(most), choose(is_finite(other), larger(most, other), other), most);
  });
  return choose(is_finite(most), power_of_two(most), not_a_number<S>());
}

// A rotation of p and q. x and y become cosine * x - sine * y and sine * x + cosine * y, where cosine = 1 - sine *
// slope: so they are no longer or shorter, up to one rounding of what is added (Rutishauser, 1966).
template <class S>
struct Turn {
  S sine, slope;
  int p, q;
  BARACUDA_HD void operator()(S& x, S& y) const {
    S turned = x - sine * (y + slope * x);
    y = y + sine * (x - slope * y), x = turned;
  }
};

// The columns of a matrix, which are exchanged as their values are.
template <class Matrix>
struct Columns {
  int rows;
  const Matrix& matrix;
};

// Sorts values, ascending, by exchanges of neighbors; equal ones stay in order.
template <class Team, class Size, class S, class... Matrix>
BARACUDA_HD void sort(Team team, Size n, const View<S>& values, const Columns<Matrix>&... columns) {
  for (int round = 0; round < n; ++round) {
    auto sort_pairs = [&](auto parity) {
      [[maybe_unused]] auto exchange_columns = [&](const auto& some) {
        team.each(0, some.rows, [&](int i) {
          loop(n, 0, n, [&](int j) {
            if (j % 2 != parity || j + 1 >= n) return;
            auto is_wrong = values(j + 1, 0) < values(j, 0);
            S a = some.matrix(i, j), b = some.matrix(i, j + 1);
            some.matrix(i, j) = choose(is_wrong, b, a), some.matrix(i, j + 1) = choose(is_wrong, a, b);
          });
        });
      };
      (exchange_columns(columns), ...);
      team.sync();
      team.each(0, n, [&](int j) {
        if (j % 2 != parity || j + 1 >= n) return;
        S a = values(j, 0), b = values(j + 1, 0);
        auto is_wrong = b < a;
        values(j, 0) = choose(is_wrong, b, a), values(j + 1, 0) = choose(is_wrong, a, b);
      });
      team.sync();
    };
    if (round % 2 == 0)
      sort_pairs(std::integral_constant<int, 0>{});
    else
      sort_pairs(std::integral_constant<int, 1>{});
  }
}

// The sign by which the first of the elements of column j that are about as large as any becomes positive.
template <class Size, class Matrix>
BARACUDA_HD auto sign_of_column(Size n, const Matrix& v, int rows, int j) {
  using S = typename Matrix::Number;
  const Element<S> near = 1 - 16 * std::sqrt(std::numeric_limits<Element<S>>::epsilon());
  S most = all<S>(0), chosen = all<S>(1);
  loop(n, 0, rows, [&](int i) { most = larger(most, magnitude(v(i, j))); });
  S enough = most * all<S>(near);
  loop(n, 0, rows, [&](int back) {
    S value = v(rows - 1 - back, j);
    chosen = choose(magnitude(value) >= enough, value, chosen);
  });
  return choose(chosen < all<S>(0), all<S>(-1), all<S>(1));
}

}  // namespace tiny
}  // namespace baracuda
