// The grouped pattern on a CUDA grid.
#pragma once

#include "grouped_mma_cuda.h"

namespace baracuda {

// A tile has as many rows as the caller counted tiles with. Wide tiles read less, where enough of them are full.
template <class T>
Status grouped_products(const Executor& executor, const GroupedProducts<T>& work) {
  using namespace internal;
  if (work.by.rows == 0 || work.columns == 0) return {};
  if (work.tile == 32) return grouped_products_by<GroupedShape<32, 128, 1, 4, 4, 2>>(executor, work);
  if (work.tile == 64) return grouped_products_by<GroupedShape<64, 128, 2, 2, 4, 2>>(executor, work);
  if (work.by.rows < 512 * work.by.groups)
    return grouped_products_by<GroupedShape<128, 128, 2, 2, 3, 2>>(executor, work);
  return grouped_products_by<GroupedShape<128, 256, 2, 4, 4, 1>>(executor, work);
}

template <class T>
Status grouped_sums(const Executor& executor, const GroupedSums<T>& work) {
  using namespace internal;
  if (work.by.groups == 0 || work.left == 0 || work.right == 0) return {};
  if (work.by.rows < 1024 * work.by.groups) return grouped_sums_by<GroupedShape<128, 128, 2, 2, 3, 2>>(executor, work);
  return grouped_sums_by<GroupedShape<128, 256, 2, 4, 4, 1>>(executor, work);
}

}  // namespace baracuda
