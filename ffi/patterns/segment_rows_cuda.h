// Broadcasts by ids: each row, wherever it is in memory, from the segment that its id names. Rows are read and written
// in their own order, and what the segments have comes from the cache.
#pragma once

#include <algorithm>

#include "divisor.h"
#include "early_cuda.h"
#include "segment.h"

namespace baracuda {
namespace internal {

inline constexpr int rows_threads = 256;

// Where short segments' rows are written by another kernel: which blocks of chunks have longer segments, or rows of
// none. Without blocks all rows are written.
struct LongerSegments {
  const uint32_t* blocks = nullptr;
  int64_t count = 0;
  uint32_t longer_than = 0;

  // Called by all threads of a block.
  __device__ bool is_any() const {
    uint32_t found = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) found |= blocks[i];
    return __syncthreads_or(found != 0);
  }
};

template <int V, class Index, class Broadcaster>
__global__ void __launch_bounds__(rows_threads)
    broadcast_rows(Broadcaster broadcaster, SegmentIndex index, Divisor<Index> tiles, Divisor<Index> rows, Index total,
                   typename Broadcaster::Element* dx, LongerSegments longer) {
  next_may_begin();
  wait_for_kernel_before();
  if (longer.count > 0 && !longer.is_any()) return;
  const SegmentShape& shape = index.shape;
  Index step = Index(gridDim.x) * rows_threads;
  for (Index i = Index(blockIdx.x) * rows_threads + threadIdx.x; i < total; i += step) {
    Index in_all = tiles.quotient(i), batch = shape.batches == 1 ? 0 : rows.quotient(in_all);
    int64_t column = int64_t(i - in_all * tiles.value) * V, row = in_all - batch * rows.value,
            of_ids = shape.ids_batch(batch);
    uint32_t segment = uint32_t(index.ids[of_ids * shape.rows + row]);
    int64_t x_element = int64_t(in_all) * shape.columns + column;
    if (segment >= shape.segments) {  // also of negative ids
      store<V>(dx + x_element, Vector<typename Broadcaster::Element, V>{});
      continue;
    }
    if (longer.count > 0) {
      const uint32_t* offsets = index.offsets + of_ids * (shape.segments + 1) + segment;
      if (offsets[1] - offsets[0] <= longer.longer_than) continue;
    }
    auto part = broadcaster.template part<V>(of_ids * shape.segments + segment,
                                             (batch * shape.segments + segment) * shape.columns + column);
    store<V>(dx + x_element, broadcaster.template row<V>(part, uint32_t(row), x_element));
  }
}

// Of longer segments alone, no more blocks than run at a time: most often they end at once.
template <int V, class Broadcaster>
Status broadcast_by_ids(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                        typename Broadcaster::Element* dx, const LongerSegments& longer = {}) {
  const SegmentShape& shape = index.shape;
  int64_t tiles = shape.columns / V, total = shape.batches * shape.rows * tiles;
  int64_t most_blocks = longer.count > 0 ? 132 * 8 : 1 << 20;
  unsigned blocks = unsigned(std::min<int64_t>(ceil_div(total, rows_threads), most_blocks));
  auto launch = [&](auto type) {
    using Index = decltype(type);
    auto kernel = broadcast_rows<V, Index, Broadcaster>;
    Divisor<Index> by_tiles(tiles), by_rows(shape.rows);
    return launch_early(executor, kernel, blocks, rows_threads, 0, broadcaster, index, by_tiles, by_rows, Index(total),
                        dx, longer);
  };
  // A step beyond the last element is at most 2^28.
  return total < narrow_reach - (int64_t(1) << 28) ? launch(int32_t()) : launch(int64_t());
}

}  // namespace internal
}  // namespace baracuda
