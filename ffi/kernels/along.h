// What is taken from along an axis.
#pragma once

#include "number.h"

namespace baracuda {

// Elements [batches, items, columns], each x's of `count` that the index names, `fill` where that is past the end. To
// numbers that are negative as int32 `added` is added: `count` where these count from the end, else 0.
// Element n of those that one at (batch, item, column) may be is `of_batch batch + of_item item + step n + stride
// column` in x.
template <class T>
struct TakeAlong {
  using Element = T;
  const T* x;
  const uint32_t* index;
  T fill;
  uint32_t added;
  int64_t count, batches, items, columns, of_batch, of_item, step, stride;

  // Along the last dimension but one of x [batches, count, columns]. Where there is one column, batches are items and
  // what were items are columns, so that neighbors have one vector.
  static TakeAlong of(const T* x, const uint32_t* index, T fill, uint32_t added, int64_t count, int64_t batches,
                      int64_t items, int64_t columns) {
    if (columns == 1) return {x, index, fill, added, count, 1, batches, items, 0, count, 1, 0};
    return {x, index, fill, added, count, batches, items, columns, count * columns, 0, columns, 1};
  }

  template <int V>
  BARACUDA_HD Vector<T, V> at(int64_t batch, int64_t item, int64_t column) const {
    auto from = load<V>(index + (batch * items + item) * columns + column);
    const T* first = x + batch * of_batch + item * of_item + column * stride;
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) from.lane[k] += from.lane[k] >> 31 ? added : 0;
    for (int k = 0; k < V; ++k)
      out.lane[k] = from.lane[k] < uint64_t(count) ? first[from.lane[k] * step + k * stride] : fill;
    return out;
  }
};

}  // namespace baracuda
