// What the drivers of scans share on CPU threads: states in the lanes of vectors, and a step of all lanes.
#pragma once

#include <type_traits>

#include <utility>

#include "scan.h"

namespace baracuda {
namespace internal {

template <class T>
auto members(const T& state) {
  auto [first, second] = state;
  return Pair{first, second};
}

// N states, each of their members an array of its own, so that loops over them vectorize.
template <class State, int N, bool is_word = std::is_arithmetic_v<State>>
struct States {
  State word[N];

  BARACUDA_HD State operator[](int k) const { return word[k]; }
  BARACUDA_HD void set(int k, const State& state) { word[k] = state; }
};
template <class State, int N>
struct States<State, N, false> {
  using Members = decltype(members(std::declval<State>()));
  decltype(Members::first) first[N];
  decltype(Members::second) second[N];

  BARACUDA_HD State operator[](int k) const { return State{first[k], second[k]}; }
  BARACUDA_HD void set(int k, const State& state) {
    auto [a, b] = state;
    first[k] = a, second[k] = b;
  }
};

// How many lanes a vector of a functor's has.
template <class Functor>
inline constexpr int scan_lanes = sizeof(typename Functor::Element) <= 4 ? 16 : 64 / sizeof(typename Functor::Element);

// Joins the terms of the elements at `at`, one position of V lanes after the other, to the lanes' states.
template <int V, class Functor, class At>
BARACUDA_HD void scan_step(const Functor& functor, const At& at, bool exclusive, bool writes,
                           States<typename Functor::State, V>& states) {
  auto in = functor.read(at);
  States<typename Functor::State, At::lanes> seen;
  States<typename Functor::State, V> now = states;
#pragma GCC unroll 16
  for (int first = 0; first < At::lanes; first += V) {
    if (exclusive)
      for (int k = 0; k < V; ++k) seen.set(first + k, now[k]);
    for (int k = 0; k < V; ++k) now.set(k, Functor::join(now[k], functor.term(at, in, first + k)));
    if (!exclusive)
      for (int k = 0; k < V; ++k) seen.set(first + k, now[k]);
  }
  states = now;
  if (writes) functor.write(at, in, seen);
}

}  // namespace internal
}  // namespace baracuda
