// The segment pattern on a CUDA grid.
//
// A worker is a group of lanes, a power of two, each with V neighboring columns. Reductions take two kernels: one
// reduces every worker's chunk, the other joins the segments that span workers, between them one for those that span
// many. Small reductions take one kernel, which does both: a block for a few columns of a batch. Shares and the order
// in which they are joined are the same there, so results have the same bits. Spreads take one kernel.
#pragma once

#include "segment_index_cuda.h"

namespace baracuda {
namespace internal {

// Four blocks on a multiprocessor have enough loads in flight to use all of the memory's bandwidth.
inline constexpr int segment_block = 256, segment_blocks = 4;

struct SegmentGrid {
  int lanes;        // per worker
  int64_t tiles;    // of lanes * V columns
  int64_t items;    // per worker
  int64_t workers;  // per batch

  dim3 blocks(const SegmentShape& shape) const {
    return dim3(unsigned(ceil_div(shape.batches * workers, segment_block / lanes)),
                unsigned(tiles < 65535 ? tiles : 65535));
  }
};

// What a worker ends that others began: the segment, and how many workers before have a part of it.
struct SegmentHead {
  uint32_t segment;
  int32_t spans;

  static __device__ SegmentHead of(const Segments& segments, const SegmentChunk& chunk, int64_t worker, int64_t items) {
    return {uint32_t(chunk.first), chunk.has_head ? int32_t(worker - segments.first_item(chunk.first) / items) : 0};
  }
};

// Many lanes in flight hide the memory's latency, few workers leave few segments to join. Fixed by the shapes of a
// batch; the caller's size of the workspace follows from the same numbers.
inline SegmentGrid segment_grid(const SegmentShape& shape, int width) {
  constexpr int64_t wanted_lanes = 1 << 18;
  SegmentGrid grid;
  grid.lanes = 1;
  while (grid.lanes < 32 && grid.lanes * width < shape.columns) grid.lanes *= 2;
  grid.tiles = ceil_div(shape.columns, int64_t(grid.lanes) * width);
  int64_t items = ceil_div((shape.entries + shape.segments) * grid.lanes * grid.tiles, wanted_lanes);
  grid.items = items < 32 ? 32 : items > 1024 ? 1024 : items;
  grid.workers = ceil_div(shape.entries + shape.segments, grid.items);
  return grid;
}

// Out of line: inside a stream it would take registers from rows on their way.
template <int V, class Reducer>
__noinline__ __device__ void write_empty(const Reducer reducer, int64_t segment, int64_t element) {
  reducer.template empty<V>(segment, element);
}

// One lane's part of a worker's chunk. The rows stream by in steps of the same size wherever segments end, so that the
// workers of a warp stay together, and the rows of the next step are known before this one's have come.
template <int V, class Reducer, int step>
struct SegmentStream {
  using Element = typename Reducer::Element;
  using State = typename Reducer::template State<V>;
  using More = decltype(more_of<V>(std::declval<const Reducer&>(), SegmentRow{}));

  const Reducer& reducer;
  const Segments& segments;
  const SegmentChunk& chunk;
  int64_t columns, column, element, shared;
  int64_t first_x_element, first_index;  // of the batch's first row and entry
  State* head;
  State state;
  int32_t segment;      // that is being reduced
  uint32_t begin, end;  // its rows' positions

  __device__ void open(int32_t next) {
    segment = next;
    begin = end;
    end = segment < segments.count ? segments.offsets[segment + 1] : no_row;
    reducer.start(state);
  }
  // Ends every segment whose rows end at `position`.
  __device__ void close(uint32_t position) {
    while (segment < chunk.last && end <= position) {
      if (segment == chunk.first && chunk.has_head)
        *head = state;
      else if (end > begin)
        reducer.finish(state, SegmentRows{segments.perm, segments.sources, begin, end}, shared + segment,
                       element + int64_t(segment) * columns);
      else
        write_empty<V>(reducer, shared + segment, element + int64_t(segment) * columns);
      open(segment + 1);
    }
  }
  __device__ void run(const Element* x) {
    end = uint32_t(chunk.first < segments.count ? segments.begin(chunk.first) : chunk.begin);
    open(int32_t(chunk.first));
    close(uint32_t(chunk.begin));
    uint32_t rows[step], next[step], sources[step], next_sources[step], position = uint32_t(chunk.begin);
    int64_t left = chunk.end - chunk.begin;
    auto look_up = [&](int i, int64_t at) {
      next[i] = segments.row(at);
      next_sources[i] = segments.source(at, next[i]);
    };
#pragma unroll
    for (int i = 0; i < step; ++i)
      if (i < left) look_up(i, position + i);
    for (; left > 0; left -= step, position += step) {
      Vector<Element, V> values[step];
      More more[step];
#pragma unroll
      for (int i = 0; i < step; ++i) {
        rows[i] = next[i], sources[i] = i < left ? next_sources[i] : no_row;
        if (sources[i] == no_row) continue;
        int64_t x_element = first_x_element + int64_t(sources[i]) * columns;
        values[i] = load<V>(x + x_element);
        more[i] = more_of<V>(reducer, SegmentRow{rows[i], first_index + rows[i], column, x_element});
      }
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (step + i < left) look_up(i, int64_t(position) + step + i);
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (i < left) {
          if (sources[i] != no_row) push_row(reducer, state, values[i].lane, rows[i], more[i]);
          if (position + i + 1 >= end) close(position + i + 1);
        }
    }
  }
};

// Reduces a worker's chunk of a lane's columns, `step` rows at a time.
template <int V, int step, class Reducer, class State = typename Reducer::template State<V>>
__device__ void reduce_chunk(const Reducer& reducer, const SegmentShape& shape, const Segments& segments,
                             const SegmentChunk& chunk, int64_t batch, int64_t column,
                             const typename Reducer::Element* x, State* head, State* tail) {
  SegmentStream<V, Reducer, step> stream{reducer,
                                         segments,
                                         chunk,
                                         shape.columns,
                                         column,
                                         batch * shape.segments * shape.columns + column,
                                         shape.ids_batch(batch) * shape.segments,
                                         batch * shape.rows * shape.columns + column,
                                         batch * shape.entries,
                                         head};
  stream.run(x);
  if (chunk.has_tail) *tail = stream.state;
}

template <int V, class Reducer>
__global__ void __launch_bounds__(segment_block, segment_blocks)
    reduce_chunks(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, SegmentGrid grid,
                  SegmentHead* starts, typename Reducer::template State<V>* heads,
                  typename Reducer::template State<V>* tails) {
  const SegmentShape& shape = index.shape;
  int64_t global_worker = int64_t(blockIdx.x) * (segment_block / grid.lanes) + threadIdx.x / grid.lanes;
  if (global_worker >= shape.batches * grid.workers) return;
  int64_t batch = shape.batches == 1 ? 0 : global_worker / grid.workers, worker = global_worker - batch * grid.workers;
  Segments segments(index, batch);
  SegmentChunk chunk(segments, worker, grid.items);
  if (starts && blockIdx.y == 0 && threadIdx.x % grid.lanes == 0)
    starts[global_worker] = SegmentHead::of(segments, chunk, worker, grid.items);
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t lane = tile * grid.lanes + threadIdx.x % grid.lanes, column = lane * V;
    if (column >= shape.columns) break;
    int64_t partial = global_worker * grid.tiles * grid.lanes + lane;
    reduce_chunk<V, 3>(reducer, shape, segments, chunk, batch, column, x, heads + partial, tails + partial);
  }
}

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

// Merges the tails of so many neighboring workers that all have rows of one segment alone, a block for each such run.
// Where one segment has most of the rows, one block could not read all workers' tails.
inline constexpr int run_length = 64;

inline int64_t segment_runs(const SegmentGrid& grid) {
  constexpr int64_t many_runs = 8;
  int64_t runs = (grid.workers - 1) / run_length;
  return runs < many_runs ? 0 : runs;
}

template <int V, class Reducer>
__global__ void __launch_bounds__(segment_block)
    merge_runs(Reducer reducer, int64_t columns, SegmentGrid grid, int64_t runs_of_batch, const SegmentHead* starts,
               const typename Reducer::template State<V>* tails, typename Reducer::template State<V>* runs) {
  using State = typename Reducer::template State<V>;
  __shared__ alignas(16) unsigned char memory[segment_block * sizeof(State)];
  int64_t run = blockIdx.x, batch = run / runs_of_batch;
  int64_t first = batch * grid.workers + (run - batch * runs_of_batch) * run_length;
  if (starts[first].segment != starts[first + run_length].segment) return;
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t lane = tile * grid.lanes + threadIdx.x % grid.lanes, lanes = grid.tiles * grid.lanes;
    bool in_range = lane * V < columns;
    State state = merge_in_block(reducer, reinterpret_cast<State*>(memory), grid.lanes, segment_block / grid.lanes,
                                 in_range, run_length, [&](int64_t i) { return tails[(first + i) * lanes + lane]; });
    if (in_range && threadIdx.x < grid.lanes) runs[run * lanes + lane] = state;
  }
}

// Joins the segments that span workers. Where a worker ends a segment that began a few workers before, its group merges
// their tails; where many workers before, several of the block's groups do, and take whole runs of them for one.
template <int V, class Reducer>
struct SegmentJoin {
  using State = typename Reducer::template State<V>;
  static constexpr int64_t few = 16;

  const Reducer& reducer;
  const SegmentIndex& index;
  const SegmentGrid& grid;
  int64_t runs_of_batch;
  const State *heads, *tails, *runs;
  int64_t first_worker;       // of the block's first group, among those of all batches
  int mergers;                // how many groups merge the tails of one segment
  State* memory;              // shared, for these groups
  const SegmentHead* starts;  // shared, of all groups
  uint32_t* spans_many;       // shared, a bit for each thread

  __device__ int64_t batch_of(int64_t worker) const { return index.shape.batches == 1 ? 0 : worker / grid.workers; }
  __device__ int64_t partial(int64_t worker, int64_t lane) const { return worker * grid.tiles * grid.lanes + lane; }

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
      int64_t worker = first_worker + group;
      State state;
      reducer.start(state);
      for (int64_t w = worker - start.spans; w < worker; ++w) reducer.merge(state, tails[partial(w, lane)]);
      finish(state, worker, lane, start.segment);
    }
    for (int warp = 0; warp < int(blockDim.x) / 32; ++warp)
      for (uint32_t left = spans_many[warp]; left; left &= left - 1)
        join_many((warp * 32 + __ffs(left) - 1) / grid.lanes, lane, in_range);
  }

 private:
  __device__ void finish(State& state, int64_t worker, int64_t lane, uint32_t segment) const {
    int64_t batch = batch_of(worker);
    reducer.merge(state, heads[partial(worker, lane)]);
    reducer.finish(state, Segments(index, batch).rows(segment),
                   index.shape.ids_batch(batch) * index.shape.segments + segment,
                   (batch * index.shape.segments + segment) * index.shape.columns + lane * V);
  }

  // Workers before the first run, runs, and workers after the last. The first worker may have other segments too.
  __device__ void join_many(int group, int64_t lane, bool in_range) const {
    SegmentHead start = starts[group];
    int64_t worker = first_worker + group, batch = batch_of(worker), first = worker - start.spans;
    int64_t in_batch = first - batch * grid.workers;
    int64_t run = in_batch / run_length + 1, whole = (in_batch + start.spans) / run_length - run;
    if (whole < 0 || runs_of_batch == 0) whole = 0;
    int64_t leading = whole > 0 ? run * run_length - in_batch : start.spans;
    State state = merge_in_block(reducer, memory, grid.lanes, mergers, in_range, start.spans - whole * (run_length - 1),
                                 [&](int64_t i) {
                                   if (i < leading) return tails[partial(first + i, lane)];
                                   if (i < leading + whole)
                                     return runs[partial(batch * runs_of_batch + run + i - leading, lane)];
                                   return tails[partial(first + i + whole * (run_length - 1), lane)];
                                 });
    if (in_range && threadIdx.x < grid.lanes) finish(state, worker, lane, start.segment);
  }
};

// A block looks after as many workers as it has groups of lanes.
template <int V, class Reducer>
__global__ void __launch_bounds__(segment_block)
    join_chunks(Reducer reducer, SegmentIndex index, SegmentGrid grid, int64_t runs_of_batch, const SegmentHead* starts,
                const typename Reducer::template State<V>* heads, const typename Reducer::template State<V>* tails,
                const typename Reducer::template State<V>* runs) {
  using State = typename Reducer::template State<V>;
  __shared__ alignas(16) unsigned char memory[segment_block * sizeof(State)];
  __shared__ SegmentHead shared_starts[segment_block];
  __shared__ uint32_t spans_many[segment_block / 32];
  int groups = segment_block / grid.lanes, group = threadIdx.x / grid.lanes;
  int64_t first_worker = int64_t(blockIdx.x) * groups, total = index.shape.batches * grid.workers;
  if (threadIdx.x % grid.lanes == 0)
    shared_starts[group] = first_worker + group < total ? starts[first_worker + group] : SegmentHead{0, 0};
  __syncthreads();
  SegmentJoin<V, Reducer> join{reducer,       index,     grid,         runs_of_batch, heads,
                               tails,         runs,      first_worker, groups,        reinterpret_cast<State*>(memory),
                               shared_starts, spans_many};
  join.begin();
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) join.run(tile);
}

// The one kernel of a small reduction: a block has a tile of a few columns, and all workers of a batch.
inline constexpr int fused_block = 512, fused_bytes = 1 << 15;

// Its grid; without tiles where the reduction is not small. A narrow tile makes many blocks, but should not be narrower
// than what memory reads at once. The workspace for `grid` is large enough: it has as many workers, and its tiles are
// no narrower.
inline SegmentGrid fused_grid(const SegmentShape& shape, const SegmentGrid& grid, int lane_bytes, int width) {
  constexpr int64_t sector = 32, most_blocks = 132, most_offsets = fused_bytes / sizeof(uint32_t);
  SegmentGrid fused{1, 0, grid.items, grid.workers};
  if (segment_runs(grid) > 0 || shape.segments >= most_offsets) return fused;
  auto blocks = [&] {
    fused.tiles = ceil_div(shape.columns, int64_t(fused.lanes) * width);
    return shape.batches * fused.tiles;
  };
  auto may_widen = [&] { return fused.lanes < grid.lanes && 2 * fused.lanes * grid.workers <= fused_block; };
  while (fused.lanes * lane_bytes < sector && may_widen()) fused.lanes *= 2;
  while (blocks() > most_blocks && may_widen()) fused.lanes *= 2;
  if (blocks() > most_blocks || fused.lanes * grid.workers > fused_block) fused.tiles = 0;
  return fused;
}

template <int V, class Reducer>
__global__ void __launch_bounds__(fused_block)
    reduce_fused(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, SegmentGrid grid, int mergers,
                 typename Reducer::template State<V>* heads, typename Reducer::template State<V>* tails) {
  using State = typename Reducer::template State<V>;
  constexpr int step = 6;
  __shared__ alignas(16) unsigned char memory[fused_bytes];  // offsets, then states
  __shared__ SegmentHead starts[fused_block];
  __shared__ uint32_t spans_many[fused_block / 32];
  static_assert(segment_block * sizeof(State) <= fused_bytes);
  const SegmentShape& shape = index.shape;
  int64_t batch = blockIdx.x / grid.tiles, tile = blockIdx.x - batch * grid.tiles, first_worker = batch * grid.workers;
  Segments segments(index, batch);
  uint32_t* offsets = reinterpret_cast<uint32_t*>(memory);
  for (int64_t s = threadIdx.x; s <= segments.count; s += blockDim.x) offsets[s] = segments.offsets[s];
  segments.offsets = offsets;
  __syncthreads();
  int worker = threadIdx.x / grid.lanes, lane_in_group = threadIdx.x % grid.lanes;
  SegmentHead start{0, 0};
  if (worker < grid.workers) {
    SegmentChunk chunk(segments, worker, grid.items);
    start = SegmentHead::of(segments, chunk, worker, grid.items);
    int64_t lane = tile * grid.lanes + lane_in_group;
    int64_t partial = (first_worker + worker) * grid.tiles * grid.lanes + lane;
    if (lane * V < shape.columns)
      reduce_chunk<V, step>(reducer, shape, segments, chunk, batch, lane * V, x, heads + partial, tails + partial);
  }
  if (lane_in_group == 0) starts[worker] = start;
  __syncthreads();
  SegmentJoin<V, Reducer> join{reducer, index,     grid,         0,       heads,
                               tails,   nullptr,   first_worker, mergers, reinterpret_cast<State*>(memory),
                               starts,  spans_many};
  join.begin();
  join.run(tile);
}

template <int V, class Reducer>
Status reduce_segments_by(Executor executor, const Reducer& reducer, const SegmentIndex& index,
                          const typename Reducer::Element* x) {
  using State = typename Reducer::template State<V>;
  SegmentGrid grid = segment_grid(index.shape, V);
  SegmentHead* starts = nullptr;
  State *heads = nullptr, *tails = nullptr, *merged = nullptr;
  int64_t runs = segment_runs(grid);
  if (grid.workers > 1) {
    int64_t partials = index.shape.batches * grid.workers * grid.tiles * grid.lanes;
    starts = executor.scratch<SegmentHead>(index.shape.batches * grid.workers);
    heads = executor.scratch<State>(partials), tails = executor.scratch<State>(partials);
    merged = executor.scratch<State>(index.shape.batches * runs * grid.tiles * grid.lanes);
    if (!starts || !heads || !tails || !merged) return small_workspace;
    SegmentGrid fused = fused_grid(index.shape, grid, V * sizeof(typename Reducer::Element), V);
    if (fused.tiles > 0) {
      int64_t blocks = index.shape.batches * fused.tiles, threads = ceil_div(fused.workers * fused.lanes, 32) * 32;
      threads = threads < segment_block ? segment_block : threads;
      reduce_fused<V><<<unsigned(blocks), unsigned(threads), 0, executor.stream>>>(
          reducer, index, x, fused, segment_block / grid.lanes, heads, tails);
      return launched();
    }
  }
  dim3 blocks = grid.blocks(index.shape);
  reduce_chunks<V><<<blocks, segment_block, 0, executor.stream>>>(reducer, index, x, grid, starts, heads, tails);
  if (Status status = launched(); !status.ok() || grid.workers == 1) return status;
  if (runs > 0) {
    dim3 of_runs(unsigned(index.shape.batches * runs), blocks.y);
    merge_runs<V><<<of_runs, segment_block, 0, executor.stream>>>(reducer, index.shape.columns, grid, runs, starts,
                                                                  tails, merged);
    if (Status status = launched(); !status.ok()) return status;
  }
  join_chunks<V>
      <<<blocks, segment_block, 0, executor.stream>>>(reducer, index, grid, runs, starts, heads, tails, merged);
  return launched();
}

// A worker writes the rows of its chunk, wherever in memory they are, and its part of the rows of no segment.
template <int V, class Broadcaster>
__global__ void __launch_bounds__(segment_block, segment_blocks)
    broadcast_chunks(Broadcaster broadcaster, SegmentIndex index, typename Broadcaster::Element* dx, SegmentGrid grid) {
  using Element = typename Broadcaster::Element;
  constexpr int step = 4;
  const SegmentShape& shape = index.shape;
  int64_t global_worker = int64_t(blockIdx.x) * (segment_block / grid.lanes) + threadIdx.x / grid.lanes;
  if (global_worker >= shape.batches * grid.workers) return;
  int64_t batch = shape.batches == 1 ? 0 : global_worker / grid.workers, worker = global_worker - batch * grid.workers;
  Segments segments(index, batch);
  SegmentChunk chunk(segments, worker, grid.items);
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t column = (tile * grid.lanes + threadIdx.x % grid.lanes) * V;
    if (column >= shape.columns) break;
    int64_t first_element = batch * shape.segments * shape.columns + column,
            shared = shape.ids_batch(batch) * shape.segments;
    int64_t first_x_element = batch * shape.rows * shape.columns + column;
    int64_t segment = chunk.first - 1;
    uint32_t end = 0;
    typename Broadcaster::template Part<V> part;
    for (int64_t position = chunk.begin; position < chunk.end; position += step) {
      uint32_t rows[step];
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (position + i < chunk.end) rows[i] = segments.row(position + i);
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (position + i < chunk.end) {
          if (segment < chunk.first || position + i >= end) {
            do end = segments.offsets[++segment + 1];
            while (position + i >= end && segment + 1 < segments.count);
            part = broadcaster.template part<V>(shared + segment, first_element + segment * shape.columns);
          }
          int64_t x_element = first_x_element + int64_t(rows[i]) * shape.columns;
          store<V>(dx + x_element, broadcaster.template row<V>(part, rows[i], x_element));
        }
    }
    for (int64_t i = worker; i < segments.dropped(shape.rows); i += grid.workers)
      store<V>(dx + first_x_element + int64_t(segments.dropped_row(i)) * shape.columns, Vector<Element, V>{});
  }
}

template <int V, class Broadcaster>
Status broadcast_segments_by(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                             typename Broadcaster::Element* dx) {
  SegmentGrid grid = segment_grid(index.shape, V);
  broadcast_chunks<V><<<grid.blocks(index.shape), segment_block, 0, executor.stream>>>(broadcaster, index, dx, grid);
  return launched();
}

}  // namespace internal

// The number of neighboring columns that are read together.
template <class T>
inline constexpr int segment_columns = 16 / sizeof(T);

template <class Reducer>
Status reduce_segments(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                       const typename Reducer::Element* x) {
  const SegmentShape& shape = index.shape;
  if (shape.batches * shape.segments * shape.columns == 0) return {};
  constexpr int V = segment_columns<typename Reducer::Element>;
  if (shape.columns % V == 0) return internal::reduce_segments_by<V>(executor, reducer, index, x);
  return internal::reduce_segments_by<1>(executor, reducer, index, x);
}

template <class Broadcaster>
Status broadcast_segments(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                          typename Broadcaster::Element* dx) {
  const SegmentShape& shape = index.shape;
  int64_t elements = shape.batches * shape.rows * shape.columns;
  if (elements == 0) return {};
  if (shape.segments == 0) {
    cudaError_t error = cudaMemsetAsync(dx, 0, size_t(elements) * sizeof(*dx), executor.stream);
    return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
  }
  constexpr int V = 16 / sizeof(typename Broadcaster::Element);
  if (shape.columns % V == 0) return internal::broadcast_segments_by<V>(executor, broadcaster, index, dx);
  return internal::broadcast_segments_by<1>(executor, broadcaster, index, dx);
}

}  // namespace baracuda
