// The order that sorts have: of numbers as of their keys, unsigned integers of the same size.
#pragma once

#include "number.h"

namespace baracuda {

// NaN is the greatest number, and there is one; -0 and 0 are equal. Descending is the opposite order, NaN first.
template <class T>
struct SortKey {
  using Key = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  static constexpr int bits = 8 * sizeof(T);
  static constexpr Key high = Key(Key(1) << (bits - 1)), all = Key(~Key(0));

  static BARACUDA_HD Key of(T x, bool descending) {
    Key key = ascending(x);
    return descending ? Key(~key) : key;
  }
  // A number with this key: 0 for both zeros, any NaN for all.
  static BARACUDA_HD T number(Key key, bool descending) {
    if (descending) key = Key(~key);
    if constexpr (is_float<T>) return bit_cast<T>(key & high ? Key(key ^ high) : Key(~key));
    if constexpr (std::is_signed_v<T>) return T(key ^ high);
    return T(key);
  }

 private:
  static BARACUDA_HD Key ascending(T x) {
    if constexpr (is_float<T>) {
      constexpr Key infinity = std::is_same_v<T, double>     ? Key(0x7ffull << 52)
                               : std::is_same_v<T, float>    ? Key(0x7f800000u)
                               : std::is_same_v<T, BFloat16> ? Key(0x7f80u)
                                                             : Key(0x7c00u);
      Key raw = bit_cast<Key>(x), magnitude = raw & Key(~high);
      if (magnitude > infinity) return all;
      return raw & high && magnitude ? Key(~raw) : Key(magnitude | high);
    }
    if constexpr (std::is_signed_v<T>) return Key(x) ^ high;
    return Key(x);
  }
};

}  // namespace baracuda
