// What kernels share that have matrices in memory, and panels of eight columns of a member's rows in registers. Rows
// begin at multiples of 16 bytes, and have room for whole panels.
#pragma once

#include "matrix.h"

namespace baracuda {
namespace tiny {

// A team of a matrix that has more rows than a warp has lanes: its members have several, which stay in memory.
template <class Team>
concept HasPanels = requires { requires(Team::members * Team::rows > 32); };

inline constexpr int panel = 8;
template <class S>
inline constexpr int vector_of = sizeof(S) < 16 ? 16 / int(sizeof(S)) : 1;

template <class S>
struct alignas(16) SomeOf {
  S lane[vector_of<S>];
};
template <class S>
BARACUDA_HD SomeOf<S> load_vector(const View<S>& x, int i, int j) {
  return *reinterpret_cast<const SomeOf<S>*>(&x(i, j));
}
template <class S>
BARACUDA_HD void store_vector(const View<S>& x, int i, int j, const SomeOf<S>& some) {
  *reinterpret_cast<SomeOf<S>*>(&x(i, j)) = some;
}

// Elements of row i of the identity, from column j on.
template <class S>
BARACUDA_HD SomeOf<S> unit_vector(int i, int j) {
  SomeOf<S> some;
  loop<true>(0, vector_of<S>, [&](int e) { some.lane[e] = S(j + e == i); });
  return some;
}

template <class S>
BARACUDA_HD void load_row(const View<S>& x, int i, int j, S (&to)[panel]) {
  constexpr int V = vector_of<S>;
  loop<true>(0, panel / V, [&](int v) {
    const auto some = load_vector(x, i, j + v * V);
    loop<true>(0, V, [&](int e) { to[v * V + e] = some.lane[e]; });
  });
}
template <class S>
BARACUDA_HD void store_row(const View<S>& x, int i, int j, const S (&from)[panel]) {
  constexpr int V = vector_of<S>;
  loop<true>(0, panel / V, [&](int v) {
    SomeOf<S> some;
    loop<true>(0, V, [&](int e) { some.lane[e] = from[v * V + e]; });
    store_vector(x, i, j + v * V, some);
  });
}

// The rows of a matrix of `rows` rows that a member has, as many apart as there are members.
template <class Team, class S>
struct PanelRows {
  static constexpr int M = Team::members, R = Team::rows, P = panel, V = vector_of<S>;

  Team team;
  View<S> x{};
  int rows = 0;

  BARACUDA_HD int row(int r) const { return r * M + team.index(); }
  BARACUDA_HD bool has(int r) const { return row(r) < rows; }
  BARACUDA_HD int known_row(int r) const { return has(r) ? row(r) : rows - 1; }
};

// value(r) for an r of `count` that is not static: all are values, so that what they are read from stays in registers.
template <int count, class Value>
BARACUDA_HD auto one_of(int r, const Value& value) {
  auto own = value(0);
  loop<true>(1, count, [&](int other) {
    const auto there = value(other);
    own = r == other ? there : own;
  });
  return own;
}

}  // namespace tiny
}  // namespace baracuda
