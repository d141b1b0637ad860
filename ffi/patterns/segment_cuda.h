// The segment pattern on a CUDA grid.
//
// A worker is a group of lanes, each with V neighboring columns. Reductions take two kernels: one reduces the chunks of
// workers, and joins the segments that span workers of a block; the other joins those that span blocks, before it one
// for those that span many. Broadcasts take one kernel.
#pragma once

#include <new>

#include "segment_index_cuda.h"
#include "segment_join_cuda.h"
#include "segment_stream_cuda.h"

namespace baracuda {
namespace internal {

// What a block's threads share. What is read after a chunk is reduced waits here, and not in registers, which rows on
// their way need.
template <class State>
struct SharedChunks {
  State heads[segment_block], tails[segment_block];                                // of workers
  alignas(WorkerChunk) unsigned char chunks_[segment_block][sizeof(WorkerChunk)];  // of workers
  alignas(SegmentBlock) unsigned char block_[sizeof(SegmentBlock)];
  uint32_t offsets[1];  // as many as the grid says

  __device__ const SegmentBlock& block() const { return *reinterpret_cast<const SegmentBlock*>(block_); }
  __device__ const WorkerChunk& chunk(int worker) const {
    return *reinterpret_cast<const WorkerChunk*>(chunks_[worker]);
  }
  __device__ void open(const SegmentIndex& index, const SegmentGrid& grid, SegmentHead* starts) {
    SegmentBlock block(index, grid, offsets);
    int worker = threadIdx.x / grid.lanes;
    if (threadIdx.x % grid.lanes == 0) new (chunks_[worker]) WorkerChunk(block.chunk(grid, worker));
    if (threadIdx.x == 0) {
      new (block_) SegmentBlock(block);
      if (starts && blockIdx.y == 0) starts[blockIdx.x] = SegmentHead::of(block, grid);
    }
    __syncthreads();
  }
  static size_t bytes(const SegmentGrid& grid) { return sizeof(SharedChunks) + grid.offsets_bytes(); }
};

// Joins what the workers of a block have of a tile of columns. A worker that ends a segment which began with another
// one merges the tails from there on; the last leaves the block's own.
template <int V, class Reducer, class State>
__device__ void join_workers(const Reducer& reducer, const SegmentShape& shape, const SegmentGrid& grid,
                             const SharedChunks<State>& shared, int64_t lane, State* heads, State* tails) {
  const SegmentBlock& block = shared.block();
  int worker = threadIdx.x / grid.lanes;
  const WorkerChunk& chunk = shared.chunk(worker);
  int64_t partial = blockIdx.x * grid.tiles * grid.lanes + lane;
  auto tails_from = [&](int first, int end) {
    State state;
    reducer.start(state);
    for (int w = max(first, 0); w < end; ++w)
      reducer.merge(state, shared.tails[w * grid.lanes + threadIdx.x % grid.lanes]);
    return state;
  };
  if (chunk.has_head) {
    int began = block.worker_of(grid, chunk.first);
    State state = tails_from(began, worker);
    reducer.merge(state, shared.heads[threadIdx.x]);
    if (began < 0)
      heads[partial] = state;
    else
      reducer.finish(state, block.segments.rows(chunk.first),
                     shape.ids_batch(block.batch) * shape.segments + chunk.first,
                     (block.batch * shape.segments + chunk.first) * shape.columns + lane * V);
  }
  if (worker == grid.workers - 1 && chunk.has_tail)
    tails[partial] = tails_from(block.worker_of(grid, chunk.last), grid.workers);
}

template <int V, int step, int residents, class Reducer>
__global__ void __launch_bounds__(segment_block, residents)
    reduce_chunks(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, SegmentGrid grid,
                  SegmentHead* starts, typename Reducer::template State<V>* heads,
                  typename Reducer::template State<V>* tails) {
  using State = typename Reducer::template State<V>;
  extern __shared__ __align__(16) char memory[];
  SharedChunks<State>& shared = *reinterpret_cast<SharedChunks<State>*>(memory);
  const SegmentShape& shape = index.shape;
  shared.open(index, grid, starts);
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t lane = tile * grid.lanes + threadIdx.x % grid.lanes, column = lane * V;
    if (column < shape.columns) {
      int64_t batch = shared.block().batch;
      SegmentStream<V, Reducer, step> stream{reducer,
                                             shared.block().segments,
                                             shared.chunk(threadIdx.x / grid.lanes),
                                             shape.columns,
                                             column,
                                             batch * shape.segments * shape.columns + column,
                                             shape.ids_batch(batch) * shape.segments,
                                             batch * shape.rows * shape.columns + column,
                                             batch * shape.entries,
                                             shared.heads + threadIdx.x};
      stream.run(x);
      if (stream.chunk.has_tail) shared.tails[threadIdx.x] = stream.state;
    }
    __syncthreads();
    if (column < shape.columns) join_workers<V>(reducer, shape, grid, shared, lane, heads, tails);
    __syncthreads();
  }
}

// More than by default.
template <class Kernel>
Status allow_much_shared_memory(Kernel kernel, size_t bytes) {
  constexpr size_t by_default = 48 << 10;
  if (bytes <= by_default) return {};
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

template <int V, int step, int residents, class Reducer>
Status reduce_chunks_by(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                        const typename Reducer::Element* x, const SegmentGrid& grid, SegmentHead* starts,
                        typename Reducer::template State<V>* heads, typename Reducer::template State<V>* tails) {
  auto kernel = reduce_chunks<V, step, residents, Reducer>;
  size_t bytes = SharedChunks<typename Reducer::template State<V>>::bytes(grid);
  if (Status status = allow_much_shared_memory(kernel, bytes); !status.ok()) return status;
  kernel<<<grid.over(index.shape.batches), segment_block, bytes, executor.stream>>>(reducer, index, x, grid, starts,
                                                                                    heads, tails);
  return launched();
}

// Four blocks on a multiprocessor have enough loads in flight to use all of the memory's bandwidth. Fewer are faster
// where their registers would not hold a state and the rows on their way, with what these bring along.
template <int V, int step, class Reducer>
constexpr int blocks_at_once() {
  using More = typename SegmentStream<V, Reducer, step>::More;
  constexpr size_t more = std::is_same_v<More, NoMore> ? 0 : sizeof(More);
  constexpr size_t bytes =
      sizeof(typename Reducer::template State<V>) + step * (sizeof(Vector<typename Reducer::Element, V>) + more);
  return bytes > 144 ? 2 : bytes > 80 || more > 0 ? 3 : 4;
}

// Where there are few blocks, each lane has more rows on their way.
template <int V, class Reducer>
Status reduce_segments_by(Executor executor, const Reducer& reducer, const SegmentIndex& index,
                          const typename Reducer::Element* x) {
  using State = typename Reducer::template State<V>;
  constexpr int64_t few_blocks = 2 * 132;
  SegmentGrid grid = segment_grid(index.shape, V);
  SegmentHead* starts = nullptr;
  State *heads = nullptr, *tails = nullptr, *merged = nullptr;
  int64_t chunks = index.shape.batches * grid.blocks, runs = segment_runs(grid), lanes = grid.tiles * grid.lanes;
  if (grid.blocks > 1) {
    starts = executor.scratch<SegmentHead>(chunks);
    heads = executor.scratch<State>(chunks * lanes), tails = executor.scratch<State>(chunks * lanes);
    merged = executor.scratch<State>(index.shape.batches * runs * lanes);
    if (!starts || !heads || !tails || !merged) return small_workspace;
  }
  Status status = chunks * grid.tiles <= few_blocks
                      ? reduce_chunks_by<V, 6, 2>(executor, reducer, index, x, grid, starts, heads, tails)
                      : reduce_chunks_by<V, 3, blocks_at_once<V, 3, Reducer>()>(executor, reducer, index, x, grid,
                                                                                starts, heads, tails);
  if (!status.ok() || grid.blocks == 1) return status;
  unsigned tiles = grid.over(1).y;
  if (runs > 0) {
    merge_runs<V><<<dim3(unsigned(index.shape.batches * runs), tiles), segment_block, 0, executor.stream>>>(
        reducer, index.shape.columns, grid, runs, starts, tails, merged);
    if (status = launched(); !status.ok()) return status;
  }
  join_chunks<V><<<dim3(unsigned(ceil_div(chunks, grid.workers)), tiles), segment_block, 0, executor.stream>>>(
      reducer, index, grid, runs, starts, heads, tails, merged);
  return launched();
}

// A worker writes the rows of its chunk, wherever in memory they are, and its part of the rows of no segment.
template <int V, class Broadcaster>
__global__ void __launch_bounds__(segment_block, 4)
    broadcast_chunks(Broadcaster broadcaster, SegmentIndex index, typename Broadcaster::Element* dx, SegmentGrid grid) {
  using Element = typename Broadcaster::Element;
  constexpr int step = 4;
  extern __shared__ __align__(16) char shared[];
  const SegmentShape& shape = index.shape;
  SegmentBlock block(index, grid, reinterpret_cast<uint32_t*>(shared));
  const Segments& segments = block.segments;
  SegmentChunk chunk = block.chunk(grid, threadIdx.x / grid.lanes);
  int64_t batch = block.batch, worker = block.index * grid.workers + threadIdx.x / grid.lanes;
  int64_t dropped = block.dropped(shape.rows);
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t column = (tile * grid.lanes + threadIdx.x % grid.lanes) * V;
    if (column >= shape.columns) break;
    int64_t first_element = batch * shape.segments * shape.columns + column,
            shared_segment = shape.ids_batch(batch) * shape.segments;
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
            part = broadcaster.template part<V>(shared_segment + segment, first_element + segment * shape.columns);
          }
          int64_t x_element = first_x_element + int64_t(rows[i]) * shape.columns;
          store<V>(dx + x_element, broadcaster.template row<V>(part, rows[i], x_element));
        }
    }
    for (int64_t i = worker; i < dropped; i += grid.blocks * grid.workers)
      store<V>(dx + first_x_element + int64_t(block.dropped_row(i)) * shape.columns, Vector<Element, V>{});
  }
}

template <int V, class Broadcaster>
Status broadcast_segments_by(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                             typename Broadcaster::Element* dx) {
  SegmentGrid grid = segment_grid(index.shape, V);
  broadcast_chunks<V><<<grid.over(index.shape.batches), segment_block, grid.offsets_bytes(), executor.stream>>>(
      broadcaster, index, dx, grid);
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
