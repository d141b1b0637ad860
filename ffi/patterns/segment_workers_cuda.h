// How a block of the segment pattern reduces its chunk: each worker its part, in steps; then what they share is joined
// in shared memory.
#pragma once

#include <new>

#include "segment_blocks_cuda.h"
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
  uint32_t offsets[1];  // as many as the launch says

  __device__ const SegmentBlock& block() const { return *reinterpret_cast<const SegmentBlock*>(block_); }
  __device__ const WorkerChunk& chunk(int worker) const {
    return *reinterpret_cast<const WorkerChunk*>(chunks_[worker]);
  }
  // By all threads, whose block this is.
  __device__ void open(const SegmentBlock& block, const SegmentGrid& grid) {
    int worker = threadIdx.x / grid.lanes;
    if (threadIdx.x % grid.lanes == 0) {
      auto* chunk = new (chunks_[worker]) WorkerChunk(block.chunk(grid, worker));
      chunk->has_head = chunk->has_head && block.is_longer(grid, chunk->first);
      chunk->has_tail = chunk->has_tail && block.is_longer(grid, chunk->last);
    }
    if (threadIdx.x == 0) new (block_) SegmentBlock(block);
    __syncthreads();
  }
  static size_t bytes(int64_t offsets) { return sizeof(SharedChunks) + size_t(offsets) * sizeof(uint32_t); }
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

// All tiles of columns that are the block's, each lane's by a Stream.
template <int V, class Stream, class Reducer, class State>
__device__ void reduce_tiles(const Reducer& reducer, const SegmentIndex& index, const typename Reducer::Element* x,
                             const SegmentGrid& grid, SharedChunks<State>& shared, State* heads, State* tails) {
  const SegmentShape& shape = index.shape;
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t lane = tile * grid.lanes + threadIdx.x % grid.lanes, column = lane * V;
    if (column < shape.columns) {
      int64_t batch = shared.block().batch;
      Stream stream{typename Stream::Base{
          reducer, shared.block().segments, shared.chunk(threadIdx.x / grid.lanes), shape.columns, column,
          batch * shape.segments * shape.columns + column, shape.ids_batch(batch) * shape.segments,
          batch * shape.rows * shape.columns + column, batch * shape.entries, shared.heads + threadIdx.x}};
      stream.segments.source_rows = index.source_rows;  // of the launch's constants, not of shared memory
      if constexpr (requires { stream.longer_than; }) stream.longer_than = grid.longer_than;
      stream.run(x);
      if (stream.chunk.has_tail) shared.tails[threadIdx.x] = stream.state;
    }
    __syncthreads();
    if (column < shape.columns) join_workers<V>(reducer, shape, grid, shared, lane, heads, tails);
    __syncthreads();
  }
}

}  // namespace internal
}  // namespace baracuda
