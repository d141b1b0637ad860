// Which cells are kept: predicates of a cell's bits and of those of the cell before it, which the first of a row,
// `first`, has not.
#pragma once

#include "sort_key.h"

namespace baracuda {

// NaN is not zero, and -0 is.
template <class T>
struct NonZero {
  using Key = typename SortKey<T>::Key;

  BARACUDA_HD bool operator()(Key cell, Key, bool) const { return is_float<T> ? Key(cell << 1) != 0 : cell != 0; }
};

// The cell differs from the one before it, in the order of sorts; the first does.
template <class T>
struct RunStart {
  using Key = typename SortKey<T>::Key;
  bool equal_nan;  // a NaN is like another

  BARACUDA_HD bool operator()(Key cell, Key before, bool first) const {
    if constexpr (!is_float<T>) return first | (cell != before);
    constexpr Key infinity = Key(SortKey<T>::order(false).infinity << 1);
    bool is_nan = Key(cell << 1) > infinity, are_nan = is_nan & (Key(before << 1) > infinity);
    bool differs = (cell != before) & (Key((cell | before) << 1) != 0);
    return first | (equal_nan ? differs & !are_nan : differs | is_nan);
  }
};

}  // namespace baracuda
