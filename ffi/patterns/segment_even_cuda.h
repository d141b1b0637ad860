// Segments of one length, as bags that are the rows of a matrix. None has more rows than another, so each is reduced by
// a group of lanes, and no chunks are joined. Where segments are few, each has several neighboring groups of a block,
// whose states are merged in order.
#pragma once

#include "segment_lane_cuda.h"

namespace baracuda {
namespace internal {

// Fixed by the shapes of a batch: how many batches there are does not change the order of a sum. Numbers of lanes and
// groups are powers of two, and here their logarithms: divisions would take as long as a short segment.
struct EvenGrid {
  int lanes, groups;  // of a group, of a segment
  int64_t tiles;      // of lanes * V columns
  unsigned blocks;    // of a batch

  static constexpr int of_block = 8;
  static_assert(segment_block == 1 << of_block);
};

inline EvenGrid even_grid(const SegmentShape& shape, int width, int64_t length) {
  constexpr int64_t wanted_lanes = 1 << 17, least_rows = 8;
  SegmentGrid all = segment_grid(shape, width);
  EvenGrid grid{0, 0, all.tiles, 0};
  while (1 << grid.lanes < all.lanes) ++grid.lanes;
  int64_t lanes = shape.segments * all.lanes * all.tiles;
  while (grid.lanes + grid.groups < grid.of_block && lanes << grid.groups < wanted_lanes &&
         length > least_rows << grid.groups)
    ++grid.groups;
  grid.blocks = unsigned(ceil_div(shape.segments << (grid.lanes + grid.groups), segment_block));
  return grid;
}

template <int V, class Reducer>
__global__ void __launch_bounds__(segment_block, sizeof(typename Reducer::template State<V>) > 32 ? 3 : 4)
    reduce_even_segments(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, EvenGrid grid) {
  using State = typename Reducer::template State<V>;
  constexpr int step = 4;
  __shared__ State states[segment_block];
  const SegmentShape& shape = index.shape;
  unsigned batch = shape.batches == 1 ? 0 : blockIdx.x / grid.blocks, group = threadIdx.x >> grid.lanes;
  uint32_t part = group & ((1 << grid.groups) - 1), lane_number = threadIdx.x & ((1 << grid.lanes) - 1);
  int64_t segment = (int64_t(blockIdx.x - batch * grid.blocks) << (grid.of_block - grid.lanes - grid.groups)) +
                    (group >> grid.groups);
  uint32_t begin = uint32_t(segment) * index.length, end = begin + index.length;
  uint32_t each = (index.length + (1 << grid.groups) - 1) >> grid.groups, from = min(begin + part * each, end),
           to = min(from + each, end);
  const uint32_t* sources = index.sources + shape.ids_batch(batch) * shape.entries;
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t column = ((tile << grid.lanes) + lane_number) * V;
    bool in_range = column < shape.columns && segment < shape.segments;
    auto lane = lane_of<V, step>(reducer, index, batch, nullptr, sources, x, column);
    State state;
    reducer.start(state);
    if (in_range) lane.add(state, from, to);
    for (int i = 0; i < grid.groups; ++i) {
      states[threadIdx.x] = state;
      __syncthreads();
      if (part % (2 << i) == 0) reducer.merge(state, states[threadIdx.x + (1 << (i + grid.lanes))]);
      __syncthreads();
    }
    if (in_range && part == 0) lane.finish(state, segment, begin, end);
  }
}

template <int V, class Reducer>
Status reduce_even(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                   const typename Reducer::Element* x) {
  EvenGrid grid = even_grid(index.shape, V, index.length);
  dim3 blocks(unsigned(index.shape.batches) * grid.blocks, unsigned(std::min<int64_t>(grid.tiles, 65535)));
  reduce_even_segments<V><<<blocks, segment_block, 0, executor.stream>>>(reducer, index, x, grid);
  return launched();
}

// Of the reducers that bags have, which are of floats.
template <class Reducer>
constexpr bool has_even() {
  if constexpr (requires { Reducer::of_even; }) return Reducer::of_even && is_float<typename Reducer::Element>;
  return false;
}

}  // namespace internal
}  // namespace baracuda
