// The order of extrema.
#pragma once

#include <limits>

#include "number.h"

namespace baracuda {

// A NaN beats every number, and the first NaN stays.
template <class T, bool is_max>
struct Extreme {
  using Value = Comparable<T>;
  using Limits = std::numeric_limits<Value>;

  // What beats nothing.
  static BARACUDA_HD Value weakest() {
    if constexpr (is_float<T>) return is_max ? -Limits::infinity() : Limits::infinity();
    return is_max ? Limits::lowest() : Limits::max();
  }
  static BARACUDA_HD bool beats(Value x, Value best) {
    if constexpr (is_float<T>) return !(is_max ? x <= best : x >= best) & (best == best);
    return is_max ? x > best : x < best;
  }
};

}  // namespace baracuda
