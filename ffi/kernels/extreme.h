// The order of extrema.
#pragma once

#include <limits>

#include "number.h"

namespace baracuda {

// What extrema of these numbers are sought in: unsigned integers are turned into signed ones.
template <class T>
using Ordered = typename std::conditional_t<std::is_integral_v<T>, std::make_signed<T>, std::type_identity<T>>::type;

// The order of maxima. Minima are those of numbers whose bits are inverted when they are read, and again when they are
// written; so one kernel finds both. A NaN beats every number, and the first NaN stays.
template <class T>
struct Extreme {
  using Value = Comparable<T>;
  using Limits = std::numeric_limits<Value>;
  using Bits = std::conditional_t<
      sizeof(T) == 8, uint64_t,
      std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
  Bits inverted;

  // What beats nothing.
  static BARACUDA_HD Value weakest() { return is_float<T> ? -Limits::infinity() : Limits::lowest(); }
  static BARACUDA_HD bool beats(Value x, Value best) {
    if constexpr (is_float<T>)
      return !(x <= best) & (best == best);
    else
      return x > best;
  }
  BARACUDA_HD Value value(T x) const { return Value(bit_cast<T>(Bits(bit_cast<Bits>(x) ^ inverted))); }
  BARACUDA_HD T number(Value value) const { return bit_cast<T>(Bits(bit_cast<Bits>(T(value)) ^ inverted)); }
};

// Of numbers of type T.
template <class T>
Extreme<Ordered<T>> extreme(bool is_max) {
  using Bits = typename Extreme<Ordered<T>>::Bits;
  constexpr Bits high = Bits(Bits(1) << (8 * sizeof(T) - 1)), all = Bits(~Bits(0));
  if (is_float<T>) return {is_max ? Bits(0) : high};
  return {Bits((is_max ? Bits(0) : all) ^ (std::is_signed_v<T> ? Bits(0) : high))};
}

}  // namespace baracuda
