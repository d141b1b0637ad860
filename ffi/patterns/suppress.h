// The suppress pattern: elements in an order, of which each is kept if none that is kept before it suppresses it. Here
// elements are boxes, which suppress those that they overlap.
#pragma once

#include "../kernels/nms.h"
#include "executor.h"

namespace baracuda {

// Of each element, 32 or 64 bits, or one class for all.
struct Classes {
  const int32_t* narrow = nullptr;
  const int64_t* wide = nullptr;

  BARACUDA_HD bool are_many() const { return narrow != nullptr || wide != nullptr; }
  BARACUDA_HD int64_t of(int64_t element) const {
    return wide != nullptr ? wide[element] : narrow != nullptr ? narrow[element] : 0;
  }
};

// order [batches, count] has each number below count once. The first `size` that are kept give indices [batches, size],
// then -1, and their number kept [batches].
template <class T>
struct Suppression {
  using Sum = Accumulator<T>;
  int64_t batches, count, size;
  const T* boxes;  // [batches, count, 4]
  const int32_t* order;
  Classes classes;  // [batches, count]; those of different classes do not suppress each other
  Sum limit, next;  // the number after the limit
  int32_t *indices, *kept;
};

}  // namespace baracuda
