// Binary search in a sorted sequence, in the order that sorts have.
#pragma once

#include "sort_key.h"

namespace baracuda {

// How many elements of the sequence are below a value, or, from the right, are not above it. There are no branches, and
// where the search looks depends on `count` and on earlier outcomes alone: an unsorted sequence gives some index.
template <class T>
struct Search {
  using Key = typename SortKey<T>::Key;
  const T* sequence;
  int64_t count;
  bool right;

  BARACUDA_HD int64_t of(T value) const { return of_key(SortKey<T>::of(value, false)); }
  BARACUDA_HD int64_t of_key(Key key) const {
    int64_t first = 0, left = count;
    while (left > 1) {
      int64_t half = left / 2;
      first += is_before(first + half - 1, key) ? half : 0;
      left -= half;
    }
    return first + (left == 1 && is_before(first, key));
  }
  BARACUDA_HD bool is_before(int64_t i, Key key) const {
    Key element = SortKey<T>::of(sequence[i], false);
    return right ? element <= key : element < key;
  }
};

}  // namespace baracuda
