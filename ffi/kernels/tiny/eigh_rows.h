// Jacobi's rotations of a symmetric matrix by a team whose members each have a row in registers, of the matrix and of
// the vectors. Registers that are neighbors are rotated, and exchanged: in even steps those of positions 0 and 1, 2 and
// 3, ..., in odd ones 1 and 2, 3 and 4, ..., so that in N steps all pairs of columns meet once and their order is
// reversed (the odd-even order of Luk and Park, 1989). Columns of even numbers move to the right first, and turn at the
// ends. Rows stay where they are: a member computes at each step where the column of its own number is, and whose row
// is rotated with its own.
//
// Besides what other functors ask of a team, it has
//   members           a static number, a power of two, at least the size of the matrix
//   index()           which of them this is
//   from(x, i)        x of member i; all members ask
//   largest(x)        of all members
//   share(k, pair)    writes pair k of numbers, which all see after sync() by shared(k)
#pragma once

#include "jacobi.h"

namespace baracuda {
namespace tiny {

template <class S>
struct alignas(2 * sizeof(S)) SineAndSlope {
  S sine, slope;
};

template <class Team, class S>
struct EighRows {
  static constexpr int N = Team::members;

  Team team;
  int i;         // the row, and the column whose diagonal element `diagonal` is
  S a[N], v[N];  // by the positions of columns; a has zeros where the diagonal would be
  S diagonal;
  int steps = 0;

  // The Hermitian part of x, without negative zeros, which rotations by 0 would change, divided by a power of two such
  // that its largest element is about 1, and the identity. Rows and columns from n on are zeros, which nothing rotates.
  // Returns the power; zeros and NaN where an element is not finite.
  BARACUDA_HD S load(int n, const View<S>& x) {
    S most = 0;
    bool is_whole = true;
    loop<true>(0, N, [&](int j) {
      S found = i < n && j < n ? x(i, j) * S(0.5) + x(j, i) * S(0.5) + S(0) : S(0);
      is_whole = is_whole && is_finite(found);
      most = larger(most, magnitude(found));
      a[j] = found, v[j] = S(i == j);
    });
    is_whole = !team.of_matrix(!is_whole);
    S scale = power_of_two(team.largest(is_whole ? most : S(0))), factor = 1 / scale;
    diagonal = 0;
    loop<true>(0, N, [&](int j) {
      S found = is_whole ? a[j] * factor : S(0);
      diagonal = i == j ? found : diagonal, a[j] = i == j ? S(0) : found;
    });
    return is_whole ? scale : not_a_number<S>();
  }

  // Rotates until no pair changes. Returns whether that came to be.
  BARACUDA_HD bool diagonalize() {
    bool is_open = true;
    for (int sweep = 0; sweep < most_sweeps<S>; ++sweep) {
      bool turned = false;
      for (int pair = 0; pair < N / 2; ++pair) {
        turned |= rotate<0>();
        turned |= rotate<1>();
      }
      is_open = team.of_matrix(turned);
      if (!team.any(turned)) break;
    }
    return !is_open;
  }

  // Columns and then rows of a step, `odd` or even. Returns whether the own column was rotated.
  template <int odd>
  BARACUDA_HD bool rotate() {
    constexpr int pairs = N / 2 - odd, circle = 2 * N - 1;
    constexpr S negligible = std::numeric_limits<S>::epsilon() / 8;
    // On a circle of 2 N points columns move to the right from 0 to N - 1, and back from N to 2 N - 1.
    const int point = ((i % 2 == 0 ? i : circle - i) + steps) & circle, beyond = (circle - 1 - point) & circle;
    const int begin = (beyond - steps) & circle, other = begin < N ? begin : circle - begin;
    const bool is_first = point < N;  // one that has no partner, at an end, is its own
    const int own = ((is_first ? point : beyond) - odd) >> 1;
    ++steps;

    S between = 0;
    loop<true>(0, pairs, [&](int k) {
      S found = a[2 * k + odd] + a[2 * k + odd + 1];
      between = k == own ? found : between;
    });
    // Both members of a pair compute the same, also where rounding errors of the two elements differ.
    between = (between + team.from(between, other)) * S(0.5);
    S next = team.from(diagonal, other);
    const bool is_turned = magnitude(between) > negligible;
    if (!team.any(is_turned)) {
      loop<true>(0, pairs, [&](int k) { exchange(a, 2 * k + odd), exchange(v, 2 * k + odd); });
      return false;
    }

    S apart = is_first ? next - diagonal : diagonal - next, twice = between + between;
    S inverse = inverse_root(is_turned ? apart * apart + twice * twice : S(1));
    S square = S(0.5) + S(0.5) * magnitude(apart) * inverse, of_cosine = inverse_root(square);
    S cosine = square * of_cosine, sine = is_turned ? between * inverse * of_cosine : S(0);
    sine = apart < 0 ? -sine : sine;
    S slope = sine * inverse_root((1 + cosine) * (1 + cosine)), moved = sine * of_cosine * between;
    moved = is_first ? -moved : moved;
    diagonal = is_turned ? diagonal + moved : diagonal;
    if (is_first && own < pairs) team.share(own, SineAndSlope<S>{sine, slope});
    const int zeroed = is_turned ? own : -1;
    team.sync();
    loop<true>(0, pairs, [&](int k) {
      const auto shared = team.template shared<SineAndSlope<S>>(k);
      const Turn<S> turn{shared.sine, shared.slope, 0, 0};
      S &x = a[2 * k + odd], &y = a[2 * k + odd + 1];
      x = k == zeroed ? S(0) : x, y = k == zeroed ? S(0) : y;
      turn(x, y), turn(v[2 * k + odd], v[2 * k + odd + 1]);
      exchange(a, 2 * k + odd), exchange(v, 2 * k + odd);
    });
    const S own_sine = is_first ? -sine : sine, own_slope = is_first ? slope : -slope;
    loop<true>(0, N, [&](int r) { a[r] = a[r] + own_sine * (team.from(a[r], other) + own_slope * a[r]); });
    team.sync();
    return is_turned;
  }

  BARACUDA_HD static void exchange(S (&x)[N], int r) {
    S right = x[r + 1];
    x[r + 1] = x[r], x[r] = right;
  }

  // Writes eigenvalues in ascending order, equal ones in that of their columns, and their vectors.
  BARACUDA_HD void store(int n, S scale, bool is_done, const View<S>& values, const View<S>& vectors) const {
    S key = i < n ? diagonal : std::numeric_limits<S>::infinity();
    int rank = 0;
    for (int j = 0; j < N; ++j) {
      S other = team.from(key, j);
      rank += other < key || (other == key && j < i);
    }
    if (i < n) values(rank, 0) = is_done ? diagonal * scale : not_a_number<S>();
    const bool is_reversed = steps & N;
    loop<true>(0, N, [&](int r) {
      int j = is_reversed ? N - 1 - r : r, to = team.from(rank, j);
      if (i < n && j < n) vectors(i, to) = v[r];
    });
    team.sync();
  }
};

}  // namespace tiny
}  // namespace baracuda
