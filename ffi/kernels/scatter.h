// What becomes of elements into which others are combined, in their order.
#pragma once

#include "number.h"

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

}  // namespace baracuda
