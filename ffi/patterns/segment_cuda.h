// The segment pattern on a CUDA grid.
//
// A worker is a group of lanes, each with V neighboring columns. Reductions take two kernels: one reduces the chunks of
// workers, and joins the segments that span workers of a block; the other joins those that span blocks, before it one
// for those that span many. Where most segments are left to groups, these take a third. Reductions of few rows, or of
// segments of one length, and broadcasts, take one kernel.
#pragma once

#include "segment_by_buckets_cuda.h"
#include "segment_even_cuda.h"
#include "segment_few_cuda.h"
#include "segment_groups_cuda.h"
#include "segment_held_cuda.h"
#include "segment_index_cuda.h"
#include "segment_join_cuda.h"
#include "segment_rows_cuda.h"
#include "segment_steps_cuda.h"
#include "segment_workers_cuda.h"

namespace baracuda {
namespace internal {

// Where short segments are left to groups, a block that has no others ends at once.
template <int V, class Stream, class Reducer>
__global__ void __launch_bounds__(segment_block, (blocks_at_once<V, Stream::rows_at_once, Reducer>()))
    reduce_chunks(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, SegmentGrid grid,
                  SegmentParts<typename Reducer::template State<V>> parts) {
  using State = typename Reducer::template State<V>;
  extern __shared__ __align__(16) char memory[];
  SharedChunks<State>& shared = *reinterpret_cast<SharedChunks<State>*>(memory);
  next_may_begin();
  {
    SegmentBlock block(index, grid, shared.offsets);
    if (threadIdx.x == 0 && blockIdx.y == 0) parts.starts[blockIdx.x] = SegmentHead::of(block, grid);
    if (grid.longer_than > 0) {
      bool is_longer = false;
      for (int64_t i = block.first + threadIdx.x; i <= block.last; i += segment_block)
        is_longer = is_longer || block.is_longer(grid, i);
      is_longer = __syncthreads_or(is_longer);
      if (parts.longer && threadIdx.x == 0 && blockIdx.y == 0)
        parts.longer[blockIdx.x] = is_longer || block.segments.dropped(index.shape.rows) > 0;
      if (!is_longer) return;
    }
    shared.open(block, grid);
  }
  reduce_tiles<V, Stream>(reducer, index, x, grid, shared, parts.heads, parts.tails);
}

// Where entries name rows, and segments are long.
inline bool is_by_steps(const SegmentIndex& index) { return index.sources && is_long_on_average(index.shape); }

// By the kernel of chunks, and those that join them.
template <int V, class Kernel, class Reducer>
Status reduce_by_chunks(Executor executor, Kernel kernel, const Reducer& reducer, const SegmentIndex& index,
                        const typename Reducer::Element* x, const SegmentGrid& grid, uint32_t* longer = nullptr) {
  using State = typename Reducer::template State<V>;
  int64_t chunks = index.shape.batches * grid.blocks, runs = segment_runs(grid), lanes = grid.tiles * grid.lanes;
  SegmentParts<State> parts;
  parts.longer = longer;
  parts.starts = executor.scratch<SegmentHead>(chunks);
  parts.heads = executor.scratch<State>(chunks * lanes), parts.tails = executor.scratch<State>(chunks * lanes);
  parts.runs = executor.scratch<State>(index.shape.batches * runs * lanes), parts.runs_of_batch = runs;
  if (!parts.starts || !parts.heads || !parts.tails || !parts.runs) return small_workspace;
  size_t bytes = SharedChunks<State>::bytes(grid.block_offsets());
  Status status = allow_dynamic_memory(kernel, bytes);
  if (!status.ok()) return status;
  dim3 blocks = grid.over(index.shape.batches);
  kernel<<<blocks, segment_block, bytes, executor.stream>>>(reducer, index, x, grid, parts);
  if (status = launched(); !status.ok()) return status;
  if (runs > 0) {
    dim3 of_runs(unsigned(index.shape.batches * runs), blocks.y);
    status = launch_early(executor, merge_runs<V, Reducer>, of_runs, segment_block, 0, reducer, index.shape.columns,
                          grid, parts);
    if (!status.ok()) return status;
  }
  dim3 of_chunks(unsigned(ceil_div(chunks, grid.workers)), blocks.y);
  return launch_early(executor, join_chunks<V, Reducer>, of_chunks, segment_block, 0, reducer, index, grid, parts);
}

// In steps that end with a segment; of segments that are longer alone, or of all where that is 0. Those are noted in
// `longer`.
template <int V, class Reducer>
Status reduce_by_steps(Executor executor, const Reducer& reducer, const SegmentIndex& index,
                       const typename Reducer::Element* x, uint32_t longer_than, LongerSegments* longer = nullptr) {
  constexpr int step = rows_of_step<V, Reducer>;
  SegmentGrid grid = segment_grid_of_one_wave(index.shape, V, blocks_at_once<V, step, Reducer>());
  grid.longer_than = longer_than;
  uint32_t* blocks = nullptr;
  if (longer) {
    int64_t count = index.shape.batches * grid.blocks;
    blocks = executor.scratch<uint32_t>(count);
    if (!blocks) return small_workspace;
    *longer = {blocks, count, longer_than};
  }
  return reduce_by_chunks<V>(executor, reduce_chunks<V, SegmentSteps<V, Reducer, step>, Reducer>, reducer, index, x,
                             grid, blocks);
}

template <int V, class Reducer>
Status reduce_segments_by(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                          const typename Reducer::Element* x) {
  SegmentGrid grid = segment_grid(index.shape, V);
  if constexpr (has_groups<V, Reducer>) {
    if ((has_steps<V, Reducer> || !index.sources) && is_by_groups(index, grid)) {
      grid.longer_than = most_of_group(index.shape);
      Status status = reduce_by_steps<V>(executor, reducer, index, x, grid.longer_than);
      return status.ok() ? reduce_short<V>(executor, reducer, index, x, grid) : status;
    }
    if (has_steps<V, Reducer> && is_by_steps(index)) return reduce_by_steps<V>(executor, reducer, index, x, 0);
  }
  // A second wave of few blocks would take as long as the first.
  if constexpr (requires { Reducer::most_blocks; })
    if (index.shape.batches * grid.blocks <= 2 * 132 * Reducer::most_blocks)
      grid = segment_grid_of_one_wave(index.shape, V, Reducer::most_blocks);
  return reduce_by_chunks<V>(executor, reduce_chunks<V, SegmentStream<V, Reducer, 3>, Reducer>, reducer, index, x,
                             grid);
}

// `rows` is the index that a broadcast has, which may be ids.
template <int V, class Functor>
Status reduce_and_broadcast_held(const Executor& executor, const Functor& functor, const SegmentIndex& index,
                                 const SegmentIndex& rows, const typename Functor::Element* x,
                                 typename Functor::Element* out) {
  HeldGrid<V, Functor> held(index.shape);
  LongerSegments longer;
  Status status = reduce_by_steps<V>(executor, functor.reducer, index, x, held.grid.longer_than, &longer);
  if (status.ok()) status = rescale_short<V>(executor, functor, index, out, held);
  return status.ok() ? broadcast_longer<V>(executor, functor.broadcaster, rows, out, longer) : status;
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
  int64_t dropped = segments.dropped(shape.rows);
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
      store<V>(dx + first_x_element + int64_t(segments.dropped_row(i)) * shape.columns, Vector<Element, V>{});
  }
}

template <int V, class Broadcaster>
Status broadcast_segments_by(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                             typename Broadcaster::Element* dx) {
  SegmentGrid grid = segment_grid(index.shape, V);
  broadcast_chunks<V>
      <<<grid.over(index.shape.batches), segment_block, grid.block_offsets() * sizeof(uint32_t), executor.stream>>>(
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
  bool is_few = index.ids || internal::is_few(shape);
  if (index.length) {
    if constexpr (internal::has_even<Reducer>())
      return shape.columns % V == 0 ? internal::reduce_even<V>(executor, reducer, index, x)
                                    : internal::reduce_even<1>(executor, reducer, index, x);
    return {"segments of one length need an index here"};
  }
  if constexpr (internal::has_buckets<V, Reducer>())
    if (index.ids && shape.columns % V == 0 && internal::is_by_buckets(shape) && !internal::is_few(shape))
      return internal::reduce_by_buckets<V, 4>(executor, reducer, index, x);
  if (shape.columns % V == 0)
    return is_few ? internal::reduce_few<V>(executor, reducer, index, x)
                  : internal::reduce_segments_by<V>(executor, reducer, index, x);
  return is_few ? internal::reduce_few<1>(executor, reducer, index, x)
                : internal::reduce_segments_by<1>(executor, reducer, index, x);
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
  if (shape.columns % V == 0)
    return index.ids ? internal::broadcast_by_ids<V>(executor, broadcaster, index, dx)
                     : internal::broadcast_segments_by<V>(executor, broadcaster, index, dx);
  return index.ids ? internal::broadcast_by_ids<1>(executor, broadcaster, index, dx)
                   : internal::broadcast_segments_by<1>(executor, broadcaster, index, dx);
}

// A reduction, and what it gives to the rows: results of segments and `out`, shaped as x. `rows` is the index that the
// broadcast has, which may be ids.
template <class Functor>
Status reduce_and_broadcast_segments(const Executor& executor, const Functor& functor, const SegmentIndex& index,
                                     const SegmentIndex& rows, const typename Functor::Element* x,
                                     typename Functor::Element* out) {
  constexpr int V = segment_columns<typename Functor::Element>;
  if constexpr (internal::has_held<Functor>)
    if (index.shape.batches * index.shape.rows * index.shape.segments * index.shape.columns > 0) {
      bool is_wide = index.shape.columns % V == 0;
      if (is_wide && internal::is_held<V, Functor>(index))
        return internal::reduce_and_broadcast_held<V>(executor, functor, index, rows, x, out);
      if (!is_wide && internal::is_held<1, Functor>(index))
        return internal::reduce_and_broadcast_held<1>(executor, functor, index, rows, x, out);
    }
  Status status = reduce_segments(executor, functor.reducer, index, x);
  return status.ok() ? broadcast_segments(executor, functor.broadcaster, rows, out) : status;
}

}  // namespace baracuda
