// What becomes of elements into which others are combined, in their order.
#pragma once

#include "extreme.h"

namespace baracuda {

// Sums, which are then added to x, or to zeros where x is null. `State` is that of one element; `starts` says that
// states are formed from x, which is otherwise read when they are written. Element i is one of all rows.
template <class T>
struct ScatterSum {
  using Element = T;
  using State = Accumulator<T>;
  static constexpr bool starts = false;
  const T* x;
  T* y;

  BARACUDA_HD T read(int64_t i) const { return x ? x[i] : T{}; }
  BARACUDA_HD State first(T) const { return State(0); }
  BARACUDA_HD void combine(State& state, T value, int32_t) const { state += State(value); }
  BARACUDA_HD void write(int64_t i, T x, State state) const { y[i] = T(State(x) + state); }
};

// The extrema of x and of what comes to it. What is there stays where others tie with it.
template <class T>
struct ScatterExtremum {
  using Element = T;
  using State = typename Extreme<T>::Value;
  static constexpr bool starts = true;
  Extreme<T> order;
  const T* x;
  T* y;

  BARACUDA_HD T read(int64_t i) const { return x[i]; }
  BARACUDA_HD State first(T x) const { return order.value(x); }
  BARACUDA_HD void combine(State& state, T value, int32_t) const {
    if (State other = order.value(value); Extreme<T>::beats(other, state)) state = other;
  }
  BARACUDA_HD void write(int64_t i, T, State state) const { y[i] = order.number(state); }
};

// The same, and which item of its row each is, -1 for x's own.
template <class T>
struct ScatterArgExtremum {
  using Element = T;
  struct State {
    typename Extreme<T>::Value value;
    int32_t item;
  };
  static constexpr bool starts = true;
  Extreme<T> order;
  const T* x;
  T* y;
  int32_t* arg;

  BARACUDA_HD T read(int64_t i) const { return x[i]; }
  BARACUDA_HD State first(T x) const { return {order.value(x), -1}; }
  BARACUDA_HD void combine(State& state, T value, int32_t item) const {
    if (auto other = order.value(value); Extreme<T>::beats(other, state.value)) state = {other, item};
  }
  BARACUDA_HD void write(int64_t i, T, State state) const { y[i] = order.number(state.value), arg[i] = state.item; }
};

}  // namespace baracuda
