// Segments of which several blocks have rows: each leaves a partial state, and these are merged in order.
#pragma once

#include "early_cuda.h"
#include "segment_blocks_cuda.h"

namespace baracuda {
namespace internal {

// What a block ends that others began: the segment, and how many blocks before have a part of it.
struct SegmentHead {
  uint32_t segment;
  int32_t spans;

  static __device__ SegmentHead of(const SegmentBlock& block, const SegmentGrid& grid) {
    bool is_head =
        block.first < block.last && block.worker_of(grid, block.first) < 0 && block.is_longer(grid, block.first);
    int64_t began = is_head ? block.segments.first_item(block.first) / grid.block_items() : block.index;
    return {uint32_t(block.first), int32_t(block.index - began)};
  }
};

// What blocks leave for those that join it.
template <class State>
struct SegmentParts {
  SegmentHead* starts;  // of blocks
  State *heads, *tails;
  State* runs;  // of neighboring blocks, see `run_length`
  int64_t runs_of_batch;
  uint32_t* longer;  // of blocks, whether they have longer segments or rows of none; null if nobody asks
};

// The merger of states part(0) ... part(count - 1), for the block's first group of lanes: each of so many groups merges
// neighboring ones, and the first what those gave. All threads of the block take part; `in_range` is whether the lane
// has columns.
template <class Reducer, class State, class Part>
__device__ State merge_in_block(const Reducer& reducer, State* memory, int lanes, int groups, bool in_range,
                                int64_t count, const Part& part) {
  int group = threadIdx.x / lanes;
  int64_t used = count < groups ? count : groups;
  State state;
  reducer.start(state);
  if (in_range && group < used)
    for (int64_t i = group * count / used; i < (group + 1) * count / used; ++i) reducer.merge(state, part(i));
  if (group < groups) memory[threadIdx.x] = state;
  __syncthreads();
  if (in_range && group == 0)
    for (int k = 1; k < used; ++k) reducer.merge(state, memory[k * lanes + threadIdx.x]);
  __syncthreads();
  return state;
}

// Merges the tails of so many neighboring chunks that all have rows of one segment alone, a block for each such run.
// Where one segment has most of the rows, one block could not read all tails.
inline constexpr int run_length = 64;

inline int64_t segment_runs(const SegmentGrid& grid) {
  constexpr int64_t many_runs = 8;
  int64_t runs = (grid.blocks - 1) / run_length;
  return runs < many_runs ? 0 : runs;
}

template <int V, class Reducer>
__global__ void __launch_bounds__(segment_block) merge_runs(Reducer reducer, int64_t columns, SegmentGrid grid,
                                                            SegmentParts<typename Reducer::template State<V>> parts) {
  using State = typename Reducer::template State<V>;
  __shared__ alignas(16) unsigned char memory[segment_block * sizeof(State)];
  next_may_begin();
  wait_for_kernel_before();
  int64_t run = blockIdx.x, batch = run / parts.runs_of_batch;
  int64_t first = batch * grid.blocks + (run - batch * parts.runs_of_batch) * run_length;
  if (parts.starts[first].segment != parts.starts[first + run_length].segment) return;
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t lane = tile * grid.lanes + threadIdx.x % grid.lanes, lanes = grid.tiles * grid.lanes;
    bool in_range = lane * V < columns;
    State state = merge_in_block(reducer, reinterpret_cast<State*>(memory), grid.lanes, grid.workers, in_range,
                                 run_length, [&](int64_t i) { return parts.tails[(first + i) * lanes + lane]; });
    if (in_range && threadIdx.x < grid.lanes) parts.runs[run * lanes + lane] = state;
  }
}

// Joins the segments that span chunks. Where a chunk ends a segment that began a few chunks before, its group merges
// their tails; where many chunks before, all of the block's groups do, and take whole runs of them for one.
template <int V, class Reducer>
struct SegmentJoin {
  using State = typename Reducer::template State<V>;
  static constexpr int64_t few = 16;

  const Reducer& reducer;
  const SegmentIndex& index;
  const SegmentGrid& grid;
  int64_t runs_of_batch;
  const State *heads, *tails, *runs;
  int64_t first_chunk;        // of the block's first group, among those of all batches
  State* memory;              // shared, for these groups
  const SegmentHead* starts;  // shared, of all groups
  uint32_t* spans_many;       // shared, a bit for each thread

  __device__ int64_t batch_of(int64_t chunk) const { return index.shape.batches == 1 ? 0 : chunk / grid.blocks; }
  __device__ int64_t partial(int64_t chunk, int64_t lane) const { return chunk * grid.tiles * grid.lanes + lane; }

  // Called by all threads of the block when `starts` are there, before any tile.
  __device__ void begin() const {
    bool is_many = threadIdx.x % grid.lanes == 0 && starts[threadIdx.x / grid.lanes].spans > few;
    uint32_t many = __ballot_sync(~0u, is_many);
    if (threadIdx.x % 32 == 0) spans_many[threadIdx.x / 32] = many;
    __syncthreads();
  }

  // Called by all threads of the block.
  __device__ void run(int64_t tile) const {
    int group = threadIdx.x / grid.lanes;
    int64_t lane = tile * grid.lanes + threadIdx.x % grid.lanes;
    bool in_range = lane * V < index.shape.columns;
    if (SegmentHead start = starts[group]; in_range && start.spans > 0 && start.spans <= few) {
      int64_t chunk = first_chunk + group;
      State state;
      reducer.start(state);
      for (int64_t c = chunk - start.spans; c < chunk; ++c) reducer.merge(state, tails[partial(c, lane)]);
      finish(state, chunk, lane, start.segment);
    }
    for (int warp = 0; warp < int(blockDim.x) / 32; ++warp)
      for (uint32_t left = spans_many[warp]; left; left &= left - 1)
        join_many((warp * 32 + __ffs(left) - 1) / grid.lanes, lane, in_range);
  }

 private:
  __device__ void finish(State& state, int64_t chunk, int64_t lane, uint32_t segment) const {
    int64_t batch = batch_of(chunk);
    reducer.merge(state, heads[partial(chunk, lane)]);
    reducer.finish(state, Segments(index, batch).rows(segment),
                   index.shape.ids_batch(batch) * index.shape.segments + segment,
                   (batch * index.shape.segments + segment) * index.shape.columns + lane * V);
  }

  // Chunks before the first run, runs, and chunks after the last. The first chunk may have other segments too.
  __device__ void join_many(int group, int64_t lane, bool in_range) const {
    SegmentHead start = starts[group];
    int64_t chunk = first_chunk + group, batch = batch_of(chunk), first = chunk - start.spans;
    int64_t in_batch = first - batch * grid.blocks;
    int64_t run = in_batch / run_length + 1, whole = (in_batch + start.spans) / run_length - run;
    if (whole < 0 || runs_of_batch == 0) whole = 0;
    int64_t leading = whole > 0 ? run * run_length - in_batch : start.spans;
    State state = merge_in_block(reducer, memory, grid.lanes, grid.workers, in_range,
                                 start.spans - whole * (run_length - 1), [&](int64_t i) {
                                   if (i < leading) return tails[partial(first + i, lane)];
                                   if (i < leading + whole)
                                     return runs[partial(batch * runs_of_batch + run + i - leading, lane)];
                                   return tails[partial(first + i + whole * (run_length - 1), lane)];
                                 });
    if (in_range && threadIdx.x < grid.lanes) finish(state, chunk, lane, start.segment);
  }
};

// A block looks after as many chunks as it has groups of lanes.
template <int V, class Reducer>
__global__ void __launch_bounds__(segment_block) join_chunks(Reducer reducer, SegmentIndex index, SegmentGrid grid,
                                                             SegmentParts<typename Reducer::template State<V>> parts) {
  using State = typename Reducer::template State<V>;
  __shared__ alignas(16) unsigned char memory[segment_block * sizeof(State)];
  __shared__ SegmentHead shared_starts[segment_block];
  __shared__ uint32_t spans_many[segment_block / 32];
  int group = threadIdx.x / grid.lanes;
  int64_t first_chunk = int64_t(blockIdx.x) * grid.workers, total = index.shape.batches * grid.blocks;
  next_may_begin();
  wait_for_kernel_before();
  if (threadIdx.x % grid.lanes == 0)
    shared_starts[group] = first_chunk + group < total ? parts.starts[first_chunk + group] : SegmentHead{0, 0};
  __syncthreads();
  SegmentJoin<V, Reducer> join{reducer,
                               index,
                               grid,
                               parts.runs_of_batch,
                               parts.heads,
                               parts.tails,
                               parts.runs,
                               first_chunk,
                               reinterpret_cast<State*>(memory),
                               shared_starts,
                               spans_many};
  join.begin();
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) join.run(tile);
}

}  // namespace internal
}  // namespace baracuda
