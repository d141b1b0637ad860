// The grouped pattern on a CUDA grid: half precisions on tensor cores, large ones on Hopper by warpgroups, other floats
// by threads.
#pragma once

#include "grouped_any_cuda.h"
#include "grouped_mma_cuda.h"
#ifdef BARACUDA_SM90A
#include "grouped_wgmma_cuda.h"
#endif

namespace baracuda {
namespace internal {

template <class Shape, class Kernel, class Work>
Status grouped_launch(const Executor& executor, Kernel kernel, const Work& work, int64_t tiles, int64_t across) {
  const int64_t blocks = work.by.batches * tiles * across;
  if (blocks > 0x7fffffff) return {"there are too many tiles"};
  if (Status status = allow_shared_memory(kernel, Shape::bytes); !status.ok()) return status;
  kernel<<<unsigned(blocks), Shape::threads, Shape::bytes, executor.stream>>>(work, int(tiles), int(across));
  return launched();
}

template <class Shape, class T>
Status grouped_products_by(const Executor& executor, const GroupedProducts<T>& work) {
  auto launch = [&](auto kernel) {
    return grouped_launch<Shape>(executor, kernel, work, work.tiles(), ceil_div(work.columns, Shape::columns));
  };
  if constexpr (is_half<T>)
    return launch(work.transposed ? grouped_mma_products<T, Shape, true> : grouped_mma_products<T, Shape, false>);
  else
    return launch(work.transposed ? grouped_any_products<T, Shape, true> : grouped_any_products<T, Shape, false>);
}

template <class Shape, class T>
Status grouped_sums_by(const Executor& executor, const GroupedSums<T>& work) {
  auto launch = [&](auto kernel) {
    const int64_t down = ceil_div(work.left, Shape::rows);
    return grouped_launch<Shape>(executor, kernel, work, work.by.groups * down, ceil_div(work.right, Shape::columns));
  };
  if constexpr (is_half<T>)
    return launch(grouped_mma_sums<T, Shape>);
  else
    return launch(grouped_any_sums<T, Shape>);
}

}  // namespace internal

// A tile has as many rows as the caller counted tiles with. Wide tiles read less, where enough of them are full.
template <class T>
Status grouped_products(const Executor& executor, const GroupedProducts<T>& work) {
  using namespace internal;
  if (work.by.batches == 0 || work.by.rows == 0 || work.columns == 0) return {};
  if constexpr (is_half<T>) {
#ifdef BARACUDA_SM90A
    if (suits_wgmma(work)) return grouped_products_by_wgmma(executor, work);
#endif
    if (work.tile == 32) return grouped_products_by<GroupedShape<32, 128, 1, 4, 4, 2>>(executor, work);
    if (work.tile == 64) return grouped_products_by<GroupedShape<64, 128, 2, 2, 4, 2>>(executor, work);
    // Also three narrow ones instead of two wide ones.
    if (work.by.rows < 512 * work.by.groups || ceil_div(work.columns, 128) == 3)
      return grouped_products_by<GroupedShape<128, 128, 2, 2, 3, 2>>(executor, work);
    return grouped_products_by<GroupedShape<128, 256, 2, 4, 4, 1>>(executor, work);
  } else {
    if (work.tile == 32) return grouped_products_by<GroupedThreads<T, 32>>(executor, work);
    if (work.tile == 64) return grouped_products_by<GroupedThreads<T, 64>>(executor, work);
    return grouped_products_by<GroupedThreads<T, 128>>(executor, work);
  }
}

template <class T>
Status grouped_sums(const Executor& executor, const GroupedSums<T>& work) {
  using namespace internal;
  if (work.by.batches == 0 || work.by.groups == 0 || work.left == 0 || work.right == 0) return {};
  if constexpr (is_half<T>) {
#ifdef BARACUDA_SM90A
    if (suits_wgmma(work)) return grouped_sums_by_wgmma(executor, work);
#endif
    if (work.by.rows < 1024 * work.by.groups)
      return grouped_sums_by<GroupedShape<128, 128, 2, 2, 3, 2>>(executor, work);
    return grouped_sums_by<GroupedShape<128, 256, 2, 4, 4, 1>>(executor, work);
  } else {
    return grouped_sums_by<GroupedThreads<T, 128>>(executor, work);
  }
}

}  // namespace baracuda
