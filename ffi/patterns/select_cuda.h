// Elements of given ranks of rows on a CUDA grid.
#pragma once

#include "select_block_cuda.h"
#include "sort_cuda.h"

namespace baracuda {
namespace internal {

template <class Key>
Status select_bits(Executor executor, const Rows<Key>& rows, const ElementsOfRanks<Key>& out) {
  if (rows.rows * out.items == 0) return {};
  if (rows.count <= warp_sort_most) return sort_short_rows(executor, rows, out);
  // Of few long rows a block for each would leave the others idle.
  constexpr int64_t of_block = 65536;
  bool fills = rows.count <= most_in_block<Key> || rows.rows >= std::min<int64_t>(132, rows.count / of_block);
  if (out.items <= most_ranks && fills) return select_by_counts(executor, rows, out);
  if (rows.count <= most_in_block<Key>) return sort_middle_rows(executor, rows, out);
  return sort_long_rows(executor, rows, out);
}

}  // namespace internal

template <class T>
Status select_rows(Executor executor, const T* x, const int32_t* ranks, T* values, int32_t* indices,
                   SelectShape shape) {
  using Key = typename SortKey<T>::Key;
  internal::ElementsOfRanks<Key> out{{reinterpret_cast<Key*>(values), indices, shape.ranks}, ranks, shape};
  return internal::select_bits(executor, internal::rows_of(x, shape.rows, shape.count, false), out);
}

}  // namespace baracuda
