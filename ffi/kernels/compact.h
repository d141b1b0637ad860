// Which cells are kept: predicates of cell x[row_begin + i].
#pragma once

#include "sort_key.h"

namespace baracuda {

// NaN is not zero, and -0 is.
template <class T>
struct NonZero {
  const T* x;

  BARACUDA_HD bool operator()(int64_t row_begin, int64_t i) const {
    using Key = typename SortKey<T>::Key;
    Key bits = bit_cast<Key>(x[row_begin + i]);
    return is_float<T> ? Key(bits << 1) != 0 : bits != 0;
  }
};

// The cell differs from the one before it, in the order of sorts; the first does.
template <class T>
struct RunStart {
  const T* x;
  bool equal_nan;  // a NaN is like another

  BARACUDA_HD bool operator()(int64_t row_begin, int64_t i) const {
    using Key = typename SortKey<T>::Key;
    using Value = Comparable<T>;
    T cell = x[row_begin + i], before = x[row_begin + i - (i > 0)];
    Key a = bit_cast<Key>(cell), b = bit_cast<Key>(before);
    if constexpr (!is_float<T>) return (i == 0) | (a != b);
    bool is_nan = Value(cell) != Value(cell), are_nan = is_nan & (Value(before) != Value(before));
    bool differs = (a != b) & (Key((a | b) << 1) != 0);
    return (i == 0) | (equal_nan ? differs & !are_nan : differs | is_nan);
  }
};

}  // namespace baracuda
