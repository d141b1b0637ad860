// The sort pattern on a CUDA grid: what sorts a row depends on how long it is, and on how many of its elements are
// kept.
#pragma once

#include "sort_block_cuda.h"
#include "sort_large_cuda.h"
#include "sort_ranks_cuda.h"
#include "sort_warp_cuda.h"
#include "top_cuda.h"
#include "top_warp_cuda.h"

namespace baracuda {
namespace internal {

template <class T>
Rows<typename SortKey<T>::Key> rows_of(const T* x, int64_t rows, int64_t count, bool descending) {
  using Key = typename SortKey<T>::Key;
  return {reinterpret_cast<const Key*>(x), rows, count, SortKey<T>::order(descending)};
}

template <class T, class Key = typename SortKey<T>::Key>
Status sort_by(Executor executor, const Rows<Key>& rows, const FirstElements<Key>& out) {
  int64_t kept = out.items;
  if (rows.rows * kept == 0) return {};
  if (kept <= most_top_of_warp && kept < rows.count && rows.count <= most_elements_of_warp)
    return top_of_short_rows(executor, rows, out);
  if (rows.count <= warp_sort_most) return sort_short_rows(executor, rows, out);
  if (kept <= most_top && kept <= rows.count / 4)
    return top_elements(executor, rows, nullptr, TopResult<Key>{out, rows}, int(kept));
  if (may_be_ranked(rows)) return sort_few_rows(executor, rows, out);
  if (rows.count <= most_in_block<Key>) return sort_middle_rows(executor, rows, out);
  bool shared = rows.rows <= few_rows<Key> || rows.count >= long_row;  // each by all multiprocessors
  if (shared && kept == rows.count) return sort_numbers<T>(executor, rows, out);
  if (out.indices || kept < rows.count) return sort_long_rows(executor, rows, out);
  return sort_long_values(executor, rows, out.values);
}

}  // namespace internal

template <class T>
Status sort_rows(Executor executor, const T* x, T* values, int32_t* indices, SortShape shape) {
  using Key = typename SortKey<T>::Key;
  internal::FirstElements<Key> out{reinterpret_cast<Key*>(values), indices, shape.kept};
  return internal::sort_by<T>(executor, internal::rows_of(x, shape.rows, shape.count, shape.descending), out);
}

}  // namespace baracuda
