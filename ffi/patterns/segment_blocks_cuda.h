// How the segment pattern's work is cut on a CUDA grid: a block has a chunk of the items, a worker of it, which is a
// group of lanes, a power of two, has a chunk of those. What the block's workers ask of the offsets is in shared
// memory.
#pragma once

#include <algorithm>

#include "segment.h"

namespace baracuda {
namespace internal {

inline constexpr int segment_block = 256, most_block_items = 8192;

// Fixed by the shapes of a batch; the caller's size of the workspace follows from the same numbers. A tile is
// lanes * V columns.
struct SegmentGrid {
  int lanes, workers;  // of a worker, of a block
  int64_t tiles;
  int64_t items;             // of a worker
  int64_t blocks;            // of a batch
  uint32_t longer_than = 0;  // segments of no more entries are left to groups; 0 where none are

  __host__ __device__ int64_t block_items() const { return items * workers; }
  // Of the segments that a block has items of, and of one more.
  int64_t block_offsets() const { return block_items() + 2; }
  dim3 over(int64_t batches) const {
    return dim3(unsigned(batches * blocks), unsigned(std::min<int64_t>(tiles, 65535)));
  }
};

// Many lanes in flight hide the memory's latency, long chunks leave few segments to join. Where chunks would be short,
// no more blocks than run at a time.
inline SegmentGrid segment_grid(const SegmentShape& shape, int width) {
  constexpr int64_t wanted_lanes = 1 << 18, running_lanes = 1 << 17, least_items = 8, short_items = 32,
                    most_items = 1024;
  SegmentGrid grid;
  grid.lanes = 1;
  while (grid.lanes < 32 && grid.lanes * width < shape.columns) grid.lanes *= 2;
  grid.workers = segment_block / grid.lanes;
  grid.tiles = ceil_div(shape.columns, int64_t(grid.lanes) * width);
  int64_t all = shape.entries + shape.segments, lanes = all * grid.lanes * grid.tiles;
  int64_t items = std::max(ceil_div(lanes, wanted_lanes), std::min(ceil_div(lanes, running_lanes), short_items));
  grid.items = std::clamp(items, least_items, std::min<int64_t>(most_items, most_block_items / grid.workers));
  grid.blocks = ceil_div(all, grid.block_items());
  return grid;
}

// The same in one wave of so many blocks a multiprocessor, where chunks are not too long for that: what a block looks
// up before its first row then takes time only once. The workspace is as large as for more blocks.
inline SegmentGrid segment_grid_of_one_wave(const SegmentShape& shape, int width, int at_once) {
  constexpr int64_t multiprocessors = 132, most_items = 1024;
  SegmentGrid grid = segment_grid(shape, width);
  int64_t all = shape.entries + shape.segments, tiles = std::min<int64_t>(grid.tiles, 65535);
  int64_t items = ceil_div(all * shape.batches * tiles, multiprocessors * at_once * grid.workers);
  if (items <= grid.items || items > std::min<int64_t>(most_items, most_block_items / grid.workers)) return grid;
  grid.items = items, grid.blocks = ceil_div(all, grid.block_items());
  return grid;
}

// How many segments end before an item, as Segments::ended_before, by a warp that asks at 32 positions at a time.
__device__ inline int64_t ended_before_by_warp(const Segments& segments, int64_t item) {
  int64_t low = 0, high = min(item, segments.count);
  while (low < high) {
    int64_t step = (high - low + 31) / 32, at = low + threadIdx.x % 32 * step;
    bool is_before = at < high && segments.end(at) - segments.first_row + at < item;
    int before = __popc(__ballot_sync(~0u, is_before));
    if (before == 0) break;
    high = min(high, low + before * step);
    low += (before - 1) * step + 1;
  }
  return low;
}

// A block's chunk, and that of the thread's worker.
struct SegmentBlock {
  int64_t batch, index;  // of the block in its batch
  Segments segments;
  int64_t from, to;     // items
  int64_t first, last;  // it ends the segments [first, last), and may begin segment `last`

  // All threads of the block make one; `offsets` is shared memory for grid.block_offsets().
  __device__ SegmentBlock(const SegmentIndex& all, const SegmentGrid& grid, uint32_t* offsets)
      : batch(all.shape.batches == 1 ? 0 : blockIdx.x / grid.blocks),
        index(blockIdx.x - batch * grid.blocks),
        segments(all, batch) {
    __shared__ int64_t ends[2];
    int64_t total = segments.items();
    from = min(index * grid.block_items(), total), to = min(from + grid.block_items(), total);
    if (threadIdx.x < 64) {
      int64_t found = ended_before_by_warp(segments, threadIdx.x < 32 ? from : to);
      if (threadIdx.x % 32 == 0) ends[threadIdx.x / 32] = found;
    }
    __syncthreads();
    first = ends[0];
    // In range also where ids are said to be sorted and are not.
    last = max(first, min(ends[1], first + to - from));
    int64_t known = min(last + 1, segments.count) - first;
    for (int64_t i = threadIdx.x; i <= known; i += segment_block) offsets[i] = segments.offsets[first + i];
    segments.offsets = offsets - first;  // of these segments alone
    __syncthreads();
  }

  // Of a worker of the block.
  __device__ SegmentChunk chunk(const SegmentGrid& grid, int worker) const {
    int64_t begin = min(from + worker * grid.items, to), end = min(begin + grid.items, to);
    return SegmentChunk(segments, begin, end, first, last);
  }
  // Of the segment that the block may begin last too.
  __device__ bool is_longer(const SegmentGrid& grid, int64_t segment) const {
    return segment < segments.count && segments.length(segment) > grid.longer_than;
  }
  // The worker of the block that has a segment's first row; -1 where that is in an earlier block.
  __device__ int worker_of(const SegmentGrid& grid, int64_t segment) const {
    int64_t item = segments.first_item(segment) - from;
    return item < 0 ? -1 : int(item / grid.items);
  }
};

}  // namespace internal
}  // namespace baracuda
