// Which elements are kept: predicates of an element's bits and of those of the element before it, which the first of a
// row, `first`, has not.
#pragma once

#include "sort_key.h"

namespace baracuda {

// NaN is not zero, and -0 is.
template <class T>
struct NonZero {
  using Key = typename SortKey<T>::Key;

  BARACUDA_HD bool operator()(Key element, Key, bool) const {
    return is_float<T> ? Key(element << 1) != 0 : element != 0;
  }
};

// The element differs from the one before it, in the order of sorts; the first does.
template <class T>
struct RunStart {
  using Key = typename SortKey<T>::Key;
  bool equal_nan;  // a NaN is like another

  BARACUDA_HD bool operator()(Key element, Key before, bool first) const {
    if constexpr (!is_float<T>) return first | (element != before);
    constexpr Key infinity = Key(SortKey<T>::order(false).infinity << 1);
    bool is_nan = Key(element << 1) > infinity, are_nan = is_nan & (Key(before << 1) > infinity);
    bool differs = (element != before) & (Key((element | before) << 1) != 0);
    return first | (equal_nan ? differs & !are_nan : differs | is_nan);
  }
};

}  // namespace baracuda
