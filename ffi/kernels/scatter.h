// What becomes of elements into which others are combined, in their order.
#pragma once

#include "extreme.h"

namespace baracuda {

// Of what gives each item something of the state that it was combined into, once that is written; or what is dropped.
template <class F>
concept GivesItems = requires(const F& f, typename F::Element value, const typename F::State& state) {
  f.give(int64_t{}, value, state);
  f.drop(int64_t{});
};

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

// Products, by which x is then multiplied.
template <class T>
struct ScatterProd {
  using Element = T;
  using State = Accumulator<T>;
  static constexpr bool starts = false;
  const T* x;
  T* y;

  BARACUDA_HD T read(int64_t i) const { return x[i]; }
  BARACUDA_HD State first(T) const { return State(1); }
  BARACUDA_HD void combine(State& state, T value, int32_t) const { state *= State(value); }
  BARACUDA_HD void write(int64_t i, T x, State state) const { y[i] = T(State(x) * state); }
};

// The gradient of x, dy times the product of what comes to it, and that of each factor, which is `given` when all are
// known: x dy times the product of the others.
template <class T>
struct ScatterProdBackward {
  using Element = T;
  using Wide = Accumulator<T>;
  // The product of the factors that are not zero and the number of zeros; then what is divided by a factor that is not
  // zero, and what that is multiplied by, which is all that a zero is given.
  struct State {
    Wide product, weight;
  };
  struct Both {
    T x, dy;
  };
  static constexpr bool starts = false;
  const T* x;
  const T* dy;
  T* dx;
  T* dsrc;

  BARACUDA_HD Both read(int64_t i) const { return {x[i], dy[i]}; }
  BARACUDA_HD State first(Both) const { return {Wide(1), Wide(0)}; }
  BARACUDA_HD void combine(State& state, T value, int32_t) const {
    Wide factor = Wide(value);
    bool is_zero = factor == Wide(0);
    state = {is_zero ? state.product : state.product * factor, state.weight + Wide(is_zero)};
  }
  BARACUDA_HD void write(int64_t i, Both both, State& state) const {
    Wide product = state.product, none = product * Wide(0), zeros = state.weight, weight = Wide(both.x) * Wide(both.dy);
    dx[i] = T(Wide(both.dy) * (zeros > 0 ? none : product));
    state = {zeros > 0 ? none : product, zeros > 0 ? weight * (zeros > 1 ? none : product) : weight};
  }
  BARACUDA_HD void give(int64_t j, T value, const State& state) const {
    Wide factor = Wide(value);
    dsrc[j] = T(factor == Wide(0) ? state.weight : state.product / factor * state.weight);
  }
  BARACUDA_HD void drop(int64_t j) const { dsrc[j] = T{}; }
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
