// The order that sorts have: of numbers as of their keys, unsigned integers of the same size.
#pragma once

#include "number.h"

namespace baracuda {

// Keys of the bits of numbers. NaN is the largest number, and there is one; -0 and 0 are equal. Descending is the
// opposite order, NaN first.
template <class Key>
struct KeyOrder {
  static constexpr Key high = Key(Key(1) << (8 * sizeof(Key) - 1)), all = Key(~Key(0));
  Key infinity;  // of floats; 0 for integers
  Key flipped;   // what makes unsigned integers of signed ones, and turns the sign of floats
  Key inverted;  // all, where descending

  BARACUDA_HD Key of(Key bits) const {
    Key key = bits ^ flipped;
    if (infinity) {
      // In steps that vectorize.
      Key magnitude = key & Key(~high), value = magnitude ? key : Key(0);
      key = value & high ? Key(~value) : Key(value | high);
      key = magnitude > infinity ? all : key;
    }
    return key ^ inverted;
  }
  // The bits of a number with this key: 0 for both zeros, any NaN for all.
  BARACUDA_HD Key bits(Key key) const {
    key ^= inverted;
    if (infinity) key = key & high ? Key(key ^ high) : Key(~key);
    return infinity && key == 0 ? key : Key(key ^ flipped);
  }
  // Whether several numbers have this key, which are not known by it: zeros or NaNs.
  BARACUDA_HD bool shared(Key key) const {
    key ^= inverted;
    return infinity && ((key == high) | (key == all));
  }
};

template <class T>
struct SortKey {
  using Key = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  using Order = KeyOrder<Key>;
  static constexpr Key high = Order::high, all = Order::all;

  static constexpr BARACUDA_HD Order order(bool descending) {
    Key infinity = std::is_same_v<T, double>     ? Key(0x7ffull << 52)
                   : std::is_same_v<T, float>    ? Key(0x7f800000u)
                   : std::is_same_v<T, BFloat16> ? Key(0x7f80u)
                   : std::is_same_v<T, Half>     ? Key(0x7c00u)
                                                 : Key(0);
    bool is_signed = !is_float<T> && std::is_signed_v<T>;
    return {infinity, is_signed ? high : Key(0), descending ? all : Key(0)};
  }
  // Of floats: the largest first, and NaN last.
  static constexpr BARACUDA_HD Order best_first() {
    Order turned = order(false);
    turned.flipped = high;
    return turned;
  }
  static BARACUDA_HD Key of(T x, bool descending) { return order(descending).of(bit_cast<Key>(x)); }
  static BARACUDA_HD T number(Key key, bool descending) { return bit_cast<T>(order(descending).bits(key)); }
};

}  // namespace baracuda
