// Segment reductions of few rows in one kernel: a block has a range of segments, whole, and some of the columns. Where
// there is no index it orders the rows of its segments by their ids, in shared memory. Gradients of few rows read each
// row's id.
#pragma once

#include <algorithm>

#include "segment_index_ranges_cuda.h"
#include "segment_shared_cuda.h"

namespace baracuda {
namespace internal {

// Few enough that each block can look through all ids. Python decides by the same numbers.
inline bool is_few(const SegmentShape& shape) {
  constexpr int64_t most_rows = 16384, most_segments = 32768, most_elements = 1 << 21;
  return shape.entries <= most_rows && shape.segments <= most_segments &&
         (shape.entries + shape.segments) * shape.columns <= most_elements;
}

// Fixed by the shapes of a batch.
struct FewGrid {
  SegmentGrid grid;
  int64_t ranges;     // of a batch
  int range;          // segments of one
  int rows_of_warp;   // of all ids
  int64_t row_tiles;  // blocks that share a range
};

// All multiprocessors have a block. Narrow tiles keep many of them busy with one long segment.
inline FewGrid few_grid(const SegmentShape& shape, int width, int itemsize) {
  constexpr int64_t wanted_blocks = 132, tile_bytes = 64, most_row_tiles = 8;
  FewGrid few;
  SegmentGrid& grid = few.grid;
  grid.lanes = 1;
  while (grid.lanes < 32 && grid.lanes * width * itemsize < tile_bytes && grid.lanes * width < shape.columns)
    grid.lanes *= 2;
  grid.workers = segment_block / grid.lanes;
  grid.tiles = ceil_div(shape.columns, int64_t(grid.lanes) * width);
  grid.items = 0;
  few.row_tiles = std::min(grid.tiles, most_row_tiles);
  int64_t wanted = std::min(ceil_div(wanted_blocks, few.row_tiles), shape.segments);
  few.range = int(std::min<int64_t>(ceil_div(shape.segments, wanted), segment_block));
  few.ranges = grid.blocks = ceil_div(shape.segments, few.range);
  few.rows_of_warp = int(ceil_div(shape.entries, RangeMemory<segment_block>::warps));
  return few;
}

// Of what orders the rows of a range, and of their order.
inline size_t order_bytes(const FewGrid& few, int64_t entries) {
  return RangeMemory<segment_block>::bytes(few.rows_of_warp, few.range) + size_t(entries) * sizeof(uint32_t);
}

// The segments [first, end) of a batch, with their rows in order.
__device__ inline Segments order_few(const SegmentIndex& index, int64_t batch, int first, int end, int rows_of_warp,
                                     uint32_t* offsets, RangeMemory<segment_block>& memory, uint32_t* order) {
  int64_t of_ids = index.shape.ids_batch(batch);
  SegmentKeys<int32_t, uint32_t> keys{index.ids, 0, index.shape.entries, index.shape.segments};
  order_range(
      memory, keys, of_ids, rows_of_warp, first, end - first,
      [&](int segment, uint32_t position) { offsets[segment] = position; },
      [&](uint32_t position, uint32_t row) { order[position - offsets[0]] = row; });
  uint32_t rows = offsets[end - first] - offsets[0], *sources = nullptr;
  if (index.sources) {
    sources = memory.first;  // the lists have been read
    for (uint32_t i = threadIdx.x; i < rows; i += segment_block)
      sources[i] = index.sources[of_ids * index.shape.entries + order[i]];
    sources -= offsets[0];
    __syncthreads();
  }
  return Segments(order - offsets[0], sources, offsets - first, first, end);
}

// The same where there is an index.
__device__ inline Segments look_up_few(const SegmentIndex& index, int64_t batch, int first, int end,
                                       uint32_t* offsets) {
  Segments segments(index, batch);
  for (int i = first + threadIdx.x; i <= end; i += segment_block) offsets[i - first] = segments.offsets[i];
  __syncthreads();
  return Segments(segments.perm, segments.sources, offsets - first, first, end);
}

// Where there are ids, what orders rows comes after the first `reduce_bytes` of shared memory.
template <int V, int step, class Reducer>
__global__ void __launch_bounds__(segment_block, 2)
    reduce_ranges(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, FewGrid few,
                  int64_t reduce_bytes) {
  using State = typename Reducer::template State<V>;
  extern __shared__ __align__(16) char memory[];
  SharedChunks<State>& shared = *reinterpret_cast<SharedChunks<State>*>(memory);
  auto& range_memory = *reinterpret_cast<RangeMemory<segment_block>*>(memory + reduce_bytes);
  int64_t batch = blockIdx.x / few.ranges;
  int first = int(blockIdx.x - batch * few.ranges) * few.range,
      end = int(min(int64_t(first) + few.range, index.shape.segments));
  uint32_t* order = range_memory.counts(few.rows_of_warp) + RangeMemory<segment_block>::warps * (few.range + 1);
  Segments segments = index.ids
                          ? order_few(index, batch, first, end, few.rows_of_warp, shared.offsets, range_memory, order)
                          : look_up_few(index, batch, first, end, shared.offsets);
  SegmentBlock block(batch, blockIdx.x - batch * few.ranges, segments, first);
  // At least the rows that a worker has on their way at a time.
  few.grid.items = max(int64_t(step), (block.to - block.from + few.grid.workers - 1) / few.grid.workers);
  shared.open(block, few.grid);
  reduce_tiles<V, step>(reducer, index.shape, x, few.grid, shared, static_cast<State*>(nullptr),
                        static_cast<State*>(nullptr));
}

template <int V, class Reducer>
Status reduce_few(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                  const typename Reducer::Element* x) {
  constexpr int step = 6;
  using Element = typename Reducer::Element;
  FewGrid few = few_grid(index.shape, V, sizeof(Element));
  size_t reduce_bytes = (SharedChunks<typename Reducer::template State<V>>::bytes(few.range + 1) + 15) / 16 * 16,
         bytes = reduce_bytes + (index.ids ? order_bytes(few, index.shape.entries) : 0);
  auto kernel = reduce_ranges<V, step, Reducer>;
  if (Status status = allow_dynamic_memory(kernel, bytes); !status.ok()) return status;
  dim3 grid(unsigned(index.shape.batches * few.ranges), unsigned(few.row_tiles));
  kernel<<<grid, segment_block, bytes, executor.stream>>>(reducer, index, x, few, int64_t(reduce_bytes));
  return launched();
}

// Each row, from the segment that its id names.
template <int V, class Broadcaster>
__global__ void __launch_bounds__(segment_block)
    broadcast_rows(Broadcaster broadcaster, SegmentIndex index, typename Broadcaster::Element* dx) {
  const SegmentShape& shape = index.shape;
  int64_t tiles = shape.columns / V, total = shape.batches * shape.rows * tiles;
  for (int64_t i = int64_t(blockIdx.x) * segment_block + threadIdx.x; i < total;
       i += int64_t(gridDim.x) * segment_block) {
    int64_t in_all = i / tiles, column = (i - in_all * tiles) * V, batch = in_all / shape.rows,
            row = in_all - batch * shape.rows, of_ids = shape.ids_batch(batch);
    uint32_t segment = uint32_t(index.ids[of_ids * shape.rows + row]);
    int64_t x_element = in_all * shape.columns + column;
    if (segment >= shape.segments) {  // also of negative ids
      store<V>(dx + x_element, Vector<typename Broadcaster::Element, V>{});
      continue;
    }
    auto part = broadcaster.template part<V>(of_ids * shape.segments + segment,
                                             (batch * shape.segments + segment) * shape.columns + column);
    store<V>(dx + x_element, broadcaster.template row<V>(part, uint32_t(row), x_element));
  }
}

template <int V, class Broadcaster>
Status broadcast_few(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                     typename Broadcaster::Element* dx) {
  int64_t total = index.shape.batches * index.shape.rows * (index.shape.columns / V);
  unsigned blocks = unsigned(std::min<int64_t>(ceil_div(total, segment_block), 1 << 20));
  broadcast_rows<V><<<blocks, segment_block, 0, executor.stream>>>(broadcaster, index, dx);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
