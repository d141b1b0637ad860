// The order of the floats of rows, on CPU threads: the largest first, and NaN last, as an ascending sort has the
// numbers of the other sign. Of equal ones the first comes first.
#pragma once

#include <memory>

#include "sort_cpu.h"

namespace baracuda {

template <class T>
Status best_first(const Executor& executor, const T* x, int64_t rows, int64_t count, int32_t* indices) {
  using Key = typename SortKey<T>::Key;
  int64_t all = rows * count;
  std::unique_ptr<T[]> turned(new T[size_t(all)]), sorted(new T[size_t(all)]);
  for (int64_t i = 0; i < all; ++i) turned[i] = bit_cast<T>(Key(bit_cast<Key>(x[i]) ^ SortKey<T>::high));
  return sort_rows(executor, turned.get(), sorted.get(), indices, {rows, count, count, false});
}

}  // namespace baracuda
