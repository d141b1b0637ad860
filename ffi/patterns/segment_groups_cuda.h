// Segments of about the same length, each by a group of lanes. Those that are much longer are left to the chunks of
// workers, whose kernels begin before: where there are none, their blocks end at once.
#pragma once

#include "early_cuda.h"
#include "segment_lane_cuda.h"
#include "segment_steps_cuda.h"

namespace baracuda {
namespace internal {

inline bool is_long_on_average(const SegmentShape& shape) {
  constexpr int64_t long_segment = 8;
  return shape.entries >= long_segment * shape.segments;
}

// Of as many segments as keep all multiprocessors busy: a warp's lanes then end their segments together, which in
// chunks each does when it is through. How many batches there are does not change the order of a sum.
inline bool is_by_groups(const SegmentIndex& index, const SegmentGrid& grid) {
  constexpr int64_t most_on_average = 256, least_lanes = 1 << 17;
  const SegmentShape& shape = index.shape;
  return is_long_on_average(shape) && shape.entries <= most_on_average * shape.segments &&
         shape.segments * grid.lanes * grid.tiles >= least_lanes;
}

// Longer ones would keep a group busy when others are through.
inline uint32_t most_of_group(const SegmentShape& shape) {
  constexpr int64_t least = 32, times_average = 2;
  return uint32_t(std::max(least, times_average * ceil_div(shape.entries, shape.segments)));
}

// Of a block: few, since it ends with its longest segment.
inline constexpr int group_threads = 64;

// Each group of lanes has a segment. Chunks with longer ones are reduced, and joined, by kernels that began before.
template <int V, int step, int at_once, class Reducer>
__global__ void __launch_bounds__(group_threads, at_once)
    reduce_short_segments(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, SegmentGrid grid,
                          unsigned blocks) {
  const SegmentShape& shape = index.shape;
  unsigned batch = shape.batches == 1 ? 0 : blockIdx.x / blocks;
  int lanes = __ffs(grid.lanes) - 1;
  int64_t segment = int64_t(blockIdx.x - batch * blocks) * (group_threads >> lanes) + (threadIdx.x >> lanes);
  if (segment < shape.segments) {
    Segments segments(index, batch);
    uint32_t begin = segments.offsets[segment], end = begin + segments.length(segment);
    for (int64_t tile = blockIdx.y; tile < grid.tiles && end - begin <= grid.longer_than; tile += gridDim.y) {
      int64_t column = ((tile << lanes) + (threadIdx.x & (grid.lanes - 1))) * V;
      if (column >= shape.columns) break;
      auto lane = lane_of<V, step>(reducer, index, batch, segments.perm, segments.sources, x, column);
      if (end == begin) {
        lane.empty(segment);
        continue;
      }
      typename Reducer::template State<V> state;
      reducer.start(state);
      lane.add(state, begin, end);
      lane.finish(state, segment, begin, end);
    }
  }
  if (blockIdx.x == gridDim.x - 1) wait_for_kernel_before();
}

template <int V, class Reducer>
Status reduce_short(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                    const typename Reducer::Element* x, const SegmentGrid& grid) {
  constexpr size_t bytes = sizeof(typename Reducer::template State<V>);
  constexpr int step = rows_of_step<V, Reducer>, at_once = (bytes > 32 ? 768 : 1024) / group_threads;
  unsigned blocks = unsigned(ceil_div(index.shape.segments, group_threads / grid.lanes));
  dim3 all(unsigned(index.shape.batches) * blocks, grid.over(1).y);
  return launch_early(executor, reduce_short_segments<V, step, at_once, Reducer>, all, group_threads, 0, reducer, index,
                      x, grid, blocks);
}

}  // namespace internal
}  // namespace baracuda
