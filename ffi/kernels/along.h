// What is taken from along an axis.
#pragma once

#include "number.h"

namespace baracuda {

// Each of `items` elements of a slice is x's of `count` where the index says, `fill` where that is past the end.
template <class T>
struct TakeAlong {
  using Element = T;
  int64_t count, items, columns;
  const uint32_t* index;
  const T* x;
  T fill;

  template <int V>
  BARACUDA_HD Vector<T, V> at(int64_t batch, int64_t item, int64_t column) const {
    Vector<T, V> out;
    const uint32_t* from = index + (batch * items + item) * columns + column;
    for (int k = 0; k < V; ++k)
      out.lane[k] = from[k] < uint64_t(count) ? x[(batch * count + from[k]) * columns + column + k] : fill;
    return out;
  }
};

}  // namespace baracuda
