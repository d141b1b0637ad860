// Segment reductions of a medium number of rows in no order, without an index: a block orders the rows of a bucket of
// segments in shared memory, and reduces them. Of a bucket with many rows blocks have chunks, and leave a state for
// each segment, which another kernel joins in the order of the rows.
#pragma once

#include "segment_buckets_cuda.h"
#include "segment_lane_cuda.h"
#include "segment_steps_cuda.h"

namespace baracuda {
namespace internal {

// A chunk of a bucket that has several: these are neighbors among all such chunks.
struct SumChunk {
  int32_t bucket, first, count;  // count is 0 where there is no such chunk
};

// A reducer whose results may be parts of others.
template <class Reducer>
struct SegmentPart : Reducer {
  template <int V>
  using State = typename Reducer::template State<V>;
  void* states;           // null where they are whole
  int64_t first_element;  // of the bucket's

  template <int V>
  __device__ void finish(const State<V>& s, const SegmentRows& rows, int64_t segment, int64_t element) const {
    if (states)
      static_cast<State<V>*>(states)[(element - first_element) / V] = s;
    else
      Reducer::template finish<V>(s, rows, segment, element);
  }
  template <int V>
  __device__ void empty(int64_t segment, int64_t element) const {
    if (!states) Reducer::template empty<V>(segment, element);
  }
};

// Where a block's memory for states or for what orders rows ends.
template <class State>
inline constexpr size_t bucket_head = (std::max(segment_block * sizeof(State), sizeof(BucketOrder)) + 15) / 16 * 16;

// What blocks leave in the workspace.
template <class State>
struct SumScratch {
  uint32_t *entries, *begins, *totals;  // of batches of ids
  SumChunk* chunks;                     // [batches, slots]
  uint32_t* counts;                     // [batches, slots, range], of rows
  State* states;                        // [batches, slots, range, columns / V]
};

// The k-th chunk of the buckets that have several, by all threads of the block; and how many there are.
__device__ inline SumChunk find_sum_chunk(BucketOrder& memory, const BucketGrid& grid, const uint32_t* totals, int k,
                                          int& found) {
  constexpr int each = (most_wave_buckets + segment_block - 1) / segment_block;
  __shared__ SumChunk chunk;
  __shared__ uint32_t all;
  uint32_t chunks[each], sum = 0, position, total;
#pragma unroll
  for (int i = 0; i < each; ++i) {
    int bucket = int(threadIdx.x) * each + i;
    uint32_t rows = bucket < grid.buckets ? totals[bucket] : 0;
    chunks[i] = rows > uint32_t(grid.chunk) ? (rows + grid.chunk - 1) / grid.chunk : 0;
    sum += chunks[i];
  }
  BucketOrder::Scan(memory.scan).ExclusiveSum(sum, position, total);
  if (threadIdx.x == 0) all = total, chunk = {0, 0, 0};
  __syncthreads();
#pragma unroll
  for (int i = 0; i < each; ++i) {
    if (uint32_t(k) - position < chunks[i]) chunk = {int(threadIdx.x) * each + i, int(position), int(chunks[i])};
    position += chunks[i];
  }
  __syncthreads();
  found = int(all);
  return chunk;
}

inline constexpr uint32_t least_of_block = 16;  // rows of a segment

// Blocks [0, finders) of a batch have chunks of buckets with several, in turns; the others a bucket each.
template <int V, int step, class Reducer>
__global__ void __launch_bounds__(segment_block, (blocks_at_once<V, step, Reducer>()))
    reduce_buckets(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, BucketGrid grid,
                   SegmentGrid lanes, int finders, SumScratch<typename Reducer::template State<V>> scratch) {
  using State = typename Reducer::template State<V>;
  extern __shared__ __align__(16) char memory[];
  auto* states = reinterpret_cast<State*>(memory);
  auto& order = *reinterpret_cast<BucketOrder*>(memory);
  uint32_t* offsets = reinterpret_cast<uint32_t*>(memory + bucket_head<State>);
  uint32_t* numbers = offsets + most_of_bucket + 4;
  uint32_t* sources = index.has_sources() ? numbers + grid.chunk : nullptr;
  const SegmentShape& shape = index.shape;
  int blocks = finders + grid.buckets, block = int(blockIdx.x), batch = 0;
  if (shape.batches > 1) batch = block / blocks, block -= batch * blocks;
  int64_t of_ids = shape.ids_batch(batch);
  const uint32_t* totals = scratch.totals + of_ids * grid.buckets;

  bool is_finder = block < finders;
  for (int k = block; k < (is_finder ? grid.slots : block + 1); k += finders) {
    int bucket = block - finders;
    uint32_t begin = 0;
    int64_t slot = -1;
    if (is_finder) {
      int found;
      SumChunk chunk = find_sum_chunk(order, grid, totals, k, found);
      bucket = chunk.bucket, begin = uint32_t(k - chunk.first) * grid.chunk, slot = int64_t(batch) * grid.slots + k;
      if (threadIdx.x == 0) scratch.chunks[slot] = chunk;
      if (k >= found) continue;
    }
    uint32_t count = totals[bucket] - begin;
    if (count > uint32_t(grid.chunk)) {
      if (!is_finder) return;
      count = grid.chunk;
    }
    int64_t first = int64_t(bucket) * grid.range, last = min(first + grid.range, shape.segments);
    RowsOfBucket rows{grid, bucket, scratch.entries + of_ids * grid.tiles * grid.tile_rows,
                      scratch.begins + of_ids * (grid.buckets + 1) * grid.tiles,
                      int(min(first + grid.range, shape.segments + 1) - first)};
    rows.order(order, begin, count, offsets, [&](uint32_t position, uint32_t row) {
      row /= RowsOfBucket::base, numbers[position] = row;
      if (sources) sources[position] = index.source(of_ids, row);
    });
    SegmentPart<Reducer> part{reducer, nullptr, (batch * shape.segments + first) * shape.columns};
    int segments = int(last - first), group = threadIdx.x / lanes.lanes;
    if (is_finder) {
      part.states = scratch.states + slot * grid.range * (shape.columns / V);
      for (int i = threadIdx.x; i < segments; i += segment_block)
        scratch.counts[slot * grid.range + i] = offsets[i + 1] - offsets[i];
    }
    // A segment of more rows than a group's share is added up by all groups.
    uint32_t most = max(least_of_block, count / lanes.workers);
    bool is_long = int(threadIdx.x) < segments && offsets[threadIdx.x + 1] - offsets[threadIdx.x] > most;
    bool has_long = __syncthreads_or(is_long);
    for (int64_t tile = 0; tile < lanes.tiles; ++tile) {
      int64_t column = (tile * lanes.lanes + threadIdx.x % lanes.lanes) * V;
      auto lane = lane_of<V, step>(part, index, batch, numbers, sources, x, column);
      bool in_range = column < shape.columns;
      for (int i = group; in_range && i < segments; i += lanes.workers) {
        uint32_t from = offsets[i], to = offsets[i + 1];
        if (to - from > most) continue;
        State state;
        part.start(state);
        lane.add(state, from, to);
        if (to > from)
          lane.finish(state, first + i, from, to);
        else
          lane.empty(first + i);
      }
      for (int i = 0; has_long && i < segments; ++i) {
        uint32_t from = offsets[i], to = offsets[i + 1];
        if (to - from <= most) continue;
        State state = lane.add_by_block(states, lanes, in_range, from, to);
        if (in_range && group == 0) lane.finish(state, first + i, from, to);
      }
    }
    __syncthreads();
  }
}

// Each block has as large a part of a bucket's segments as the bucket has chunks, and so all have as much to do.
template <int V, class Reducer>
__global__ void __launch_bounds__(segment_block)
    join_buckets(Reducer reducer, SegmentShape shape, BucketGrid grid, SegmentGrid lanes,
                 SumScratch<typename Reducer::template State<V>> scratch) {
  using State = typename Reducer::template State<V>;
  constexpr int ahead = 8;
  SumChunk chunk = scratch.chunks[blockIdx.x];
  if (chunk.count == 0) return;
  int64_t batch = shape.batches == 1 ? 0 : blockIdx.x / grid.slots, first = int64_t(chunk.bucket) * grid.range;
  int part = int(blockIdx.x - batch * grid.slots) - chunk.first;
  int segments = int(min(first + grid.range, shape.segments) - first);
  int from = part * segments / chunk.count, to = (part + 1) * segments / chunk.count;
  int64_t slot = batch * grid.slots + chunk.first, vectors = shape.columns / V;
  const uint32_t* counts = scratch.counts + slot * grid.range;
  const State* states = scratch.states + slot * grid.range * vectors;
  for (int64_t lane = threadIdx.x % lanes.lanes; lane < vectors; lane += lanes.lanes)
    for (int i = from + int(threadIdx.x) / lanes.lanes; i < to; i += lanes.workers) {
      State state;
      reducer.start(state);
      uint32_t rows = 0;
      for (int c = 0; c < chunk.count; c += ahead) {
        uint32_t count[ahead];
        State next[ahead];  // of anything where there are no rows
#pragma unroll
        for (int k = 0; k < ahead; ++k) {
          int64_t at = int64_t(min(c + k, chunk.count - 1)) * grid.range + i;
          count[k] = counts[at], next[k] = states[at * vectors + lane];
        }
#pragma unroll
        for (int k = 0; k < ahead; ++k)
          if (c + k < chunk.count && count[k] > 0) reducer.merge(state, next[k]), rows += count[k];
      }
      int64_t segment = shape.ids_batch(batch) * shape.segments + first + i,
              element = (batch * shape.segments + first + i) * shape.columns + lane * V;
      if (rows > 0)
        reducer.finish(state, SegmentRows{nullptr, nullptr, 0, 0, rows}, segment, element);
      else
        reducer.template empty<V>(segment, element);
    }
}

// Of types whose rows come 16 bytes at a time, and of reducers that need no more of a segment's rows than their number.
template <int V, class Reducer>
constexpr bool has_buckets() {
  if constexpr (requires { Reducer::by_buckets; })
    return Reducer::by_buckets && V > 1 && is_float<typename Reducer::Element> &&
           sizeof(typename Reducer::Element) <= 4;
  return false;
}

template <int V, int step, class Reducer>
Status reduce_by_buckets(Executor executor, const Reducer& reducer, const SegmentIndex& index,
                         const typename Reducer::Element* x) {
  using State = typename Reducer::template State<V>;
  constexpr int most_finders = 264;
  const SegmentShape& shape = index.shape;
  BucketGrid grid = bucket_grid(shape, blocks_at_once<V, step, Reducer>());
  SegmentGrid lanes = segment_grid(shape, V);
  int64_t id_batches = shape.batches / shape.sharing, slots = shape.batches * grid.slots;
  SumScratch<State> scratch;
  scratch.totals = executor.scratch<uint32_t>(id_batches * grid.buckets);
  scratch.entries = executor.scratch<uint32_t>(id_batches * grid.tiles * grid.tile_rows);
  scratch.begins = executor.scratch<uint32_t>(id_batches * (grid.buckets + 1) * grid.tiles);
  scratch.chunks = executor.scratch<SumChunk>(slots);
  scratch.counts = executor.scratch<uint32_t>(slots * grid.range);
  scratch.states = executor.scratch<State>(slots * grid.range * (shape.columns / V));
  if (!scratch.totals || !scratch.entries || !scratch.begins || !scratch.chunks || !scratch.counts || !scratch.states)
    return small_workspace;
  SegmentKeys<int32_t, uint32_t> keys{index.ids, id_batches, shape.entries, shape.segments};
  if (Status status = sort_by_tiles(executor, keys, grid, scratch.entries, scratch.begins, scratch.totals);
      !status.ok())
    return status;
  auto kernel = reduce_buckets<V, step, Reducer>;
  size_t bytes =
      bucket_head<State> + sizeof(uint32_t) * (most_of_bucket + 4 + size_t(grid.chunk) * (index.has_sources() ? 2 : 1));
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  int finders = std::min(grid.slots, most_finders);
  kernel<<<unsigned(shape.batches * (finders + grid.buckets)), segment_block, bytes, executor.stream>>>(
      reducer, index, x, grid, lanes, finders, scratch);
  if (Status status = launched(); !status.ok()) return status;
  auto join = join_buckets<V, Reducer>;
  join<<<unsigned(slots), segment_block, 0, executor.stream>>>(reducer, shape, grid, lanes, scratch);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
