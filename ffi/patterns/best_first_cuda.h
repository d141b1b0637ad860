// The order of the floats of rows that a block can sort, on a CUDA grid: the largest first, and NaN last. Of equal ones
// the first comes first. Values are not written.
#pragma once

#include "sort_block_cuda.h"
#include "sort_ranks_cuda.h"
#include "sort_warp_cuda.h"

namespace baracuda {
namespace internal {

struct IndicesAlone {
  int32_t* indices;
  int64_t items;

  __device__ int64_t rank(int64_t, int64_t item) const { return item; }
  template <class Key>
  __device__ void write(int64_t row, int64_t item, Key, int64_t index) const {
    indices[row * items + item] = int32_t(index);
  }
};

}  // namespace internal

// Rows have at most 16,384 elements.
template <class T>
Status best_first(const Executor& executor, const T* x, int64_t rows, int64_t count, int32_t* indices) {
  using Key = typename SortKey<T>::Key;
  if (rows * count == 0) return {};
  internal::Rows<Key> of{reinterpret_cast<const Key*>(x), rows, count, SortKey<T>::best_first()};
  internal::IndicesAlone out{indices, count};
  if (count <= internal::warp_sort_most) return internal::sort_short_rows(executor, of, out);
  if (internal::may_be_ranked(of)) return internal::sort_few_rows(executor, of, out);
  return internal::sort_middle_rows(executor, of, out);
}

}  // namespace baracuda
