// Segments whose rows are reduced and then written with what that gave, while they are on chip: each by a group of
// lanes, or a block, in which several neighboring rows are on their way at a time. Registers hold the first ones; those
// that they do not hold are read again, from the cache. Segments that are much longer are left to the chunks of
// workers, whose kernels begin before, and to one that writes their rows after: where there are none, their blocks end
// at once.
#pragma once

#include "early_cuda.h"
#include "segment_blocks_cuda.h"
#include "segment_rows_cuda.h"

namespace baracuda {
namespace internal {

// A segment's rows of a tile of columns, as one lane sees them: every `1 << slots`-th row, `count` of them.
template <int V, int held, bool sorted, class Functor>
struct HeldRows {
  using Row = typename Functor::template Row<V>;

  const Functor& functor;
  const uint32_t* perm;
  int64_t columns, first_x_element;  // of row 0 of the batch, or, where rows are sorted, of the lane's first row
  uint32_t first;                    // position
  int slots, count;
  Row rows[held];

  __device__ int64_t x_element(int i) const {
    if constexpr (sorted) return first_x_element + i * (columns << slots);
    return first_x_element + int64_t(perm[first + (i << slots)]) * columns;
  }
  // Loads under conditions would wait for each other: those after the last row are of the last, also where that is no
  // row of the lane's.
  template <int n>
  __device__ void load(Row (&to)[n], int from) const {
    int last = max(count, 1) - 1;
#pragma unroll
    for (int i = 0; i < n; ++i) to[i] = functor.template row<V>(x_element(min(from + i, last)));
  }
  template <class Use>
  __device__ void each(const Use& use) {
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (i < count) use(rows[i], i);
  }
  // Of the rows that are not held.
  template <class Use>
  __device__ void others(const Use& use) const {
    constexpr int step = 2;
#pragma unroll 1
    for (int from = held; from < count; from += step) {
      Row next[step];
      load(next, from);
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (from + i < count) use(next[i], from + i);
    }
  }
};

// What the lanes of a group that have the same columns have together, in each of them. All threads of the block take
// part. `memory` is shared, where a group is a block.
template <bool by_block, int threads>
struct HeldGroup {
  int lanes, all;  // logarithms
  char* memory;

  template <class T, int V, class Join>
  __device__ void operator()(T (&x)[V], const Join& join) const {
    int end = by_block ? 32 : 1 << all;
    for (int distance = 1 << lanes; distance < end; distance *= 2)
#pragma unroll
      for (int k = 0; k < V; ++k) x[k] = join(x[k], __shfl_xor_sync(~0u, x[k], distance));
    if constexpr (by_block) {
      T* of_warps = reinterpret_cast<T*>(memory);
      int lane = threadIdx.x & ((1 << lanes) - 1);
      __syncthreads();
      if (threadIdx.x % 32 < 1 << lanes)
#pragma unroll
        for (int k = 0; k < V; ++k) of_warps[((threadIdx.x / 32 << lanes) + lane) * V + k] = x[k];
      __syncthreads();
#pragma unroll
      for (int k = 0; k < V; ++k) {
        x[k] = of_warps[lane * V + k];
        for (int w = 1; w < threads / 32; ++w) x[k] = join(x[k], of_warps[((w << lanes) + lane) * V + k]);
      }
    }
  }
};

template <int V, int held, int threads, int at_once, bool by_block, bool sorted, class Functor>
__global__ void __launch_bounds__(threads, at_once)
    rescale_short_segments(Functor functor, SegmentIndex index, typename Functor::Element* out, SegmentGrid grid,
                           int slots, unsigned blocks) {
  using State = typename Functor::template State<V>;
  __shared__ __align__(16) char memory[by_block ? threads * V * sizeof(float) : 16];
  const SegmentShape& shape = index.shape;
  next_may_begin();
  unsigned batch = shape.batches == 1 ? 0 : blockIdx.x / blocks;
  int lanes = __ffs(grid.lanes) - 1, all = lanes + slots;
  int64_t segment = int64_t(blockIdx.x - batch * blocks) * (threads >> all) + (threadIdx.x >> all);
  Segments segments(index, batch);
  uint32_t begin = 0, end = 0;
  bool is_here = segment < shape.segments;
  if (is_here) begin = segments.offsets[segment], end = begin + segments.length(segment);
  is_here = is_here && end - begin <= grid.longer_than;
  if (!is_here) segment = begin = end = 0;
  uint32_t slot = threadIdx.x >> lanes & ((1 << slots) - 1), length = end - begin;
  uint32_t first = length > slot ? begin + slot : min(begin, uint32_t(shape.rows - 1));
  HeldGroup<by_block, threads> group{lanes, all, memory};
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t column = ((tile << lanes) + (threadIdx.x & (grid.lanes - 1))) * V;
    bool in_range = column < shape.columns && is_here;
    if (!in_range) column = 0;
    int64_t first_row = int64_t(batch) * shape.rows + (sorted ? first : 0);
    HeldRows<V, held, sorted, Functor> rows{functor,
                                            segments.perm,
                                            shape.columns,
                                            first_row * shape.columns + column,
                                            first,
                                            slots,
                                            in_range && length > slot ? int((length - slot - 1) >> slots) + 1 : 0};
    int64_t of_columns = shape.ids_batch(batch) * shape.segments + segment,
            element = (int64_t(batch) * shape.segments + segment) * shape.columns + column;
    rows.load(rows.rows, 0);
    State state;
    functor.template begin<V>(state, of_columns, element);
    if constexpr (requires { functor.template agree<V>(state, group); }) {
      auto look = [&](auto& row, int) { functor.template look<V>(state, row); };
      rows.each(look);
      rows.others(look);
      functor.template agree<V>(state, group);
    }
    auto push = [&](auto& row, int) {
      functor.template weigh<V>(state, row);
      functor.template push<V>(state, row);
    };
    rows.each(push);
    rows.others(push);
    functor.template sum<V>(state, group);
    if (in_range && slot == 0) {
      if (length > 0)
        functor.template finish<V>(state, segments.rows(segment), of_columns, element);
      else
        functor.reducer.template empty<V>(of_columns, element);
    }
    functor.template turn<V>(state);
    auto write = [&](auto& row, int i) { store<V>(out + rows.x_element(i), functor.template value<V>(state, row)); };
    rows.each(write);
    rows.others([&](auto& row, int i) {
      functor.template weigh<V>(state, row);
      write(row, i);
    });
  }
  if (blockIdx.x == gridDim.x - 1) wait_for_kernel_before();
}

// How segments are given to groups, which have as many lanes as hold a segment of the average length; or half of one,
// where a lane's rows and state take more registers.
template <int V, class Functor>
struct HeldGrid {
  static constexpr bool has_two = sizeof(typename Functor::template Row<V>) > V * sizeof(typename Functor::Element);
  static constexpr int threads = 128, rows = has_two ? (V > 4 ? 2 : 3) : (V > 4 ? 4 : 6), at_once = has_two ? 7 : 8;
  static constexpr int block_threads = 256, block_rows = 8, blocks_at_once = has_two ? 2 : 3;
  static constexpr bool has_blocks = V <= 4;

  SegmentGrid grid;
  int slots = 0;  // a logarithm
  bool by_block = false;

  explicit HeldGrid(const SegmentShape& shape) : grid(segment_grid(shape, V)) {
    constexpr int64_t long_segment = 256;
    int64_t times = has_two || V > 4 ? 2 : 1;
    by_block = has_blocks && shape.entries >= long_segment * shape.segments;
    int64_t most = by_block ? block_threads : 32;
    while (grid.lanes << slots < most &&
           (by_block || times * shape.segments * (int64_t(rows) << slots) < shape.entries))
      ++slots;
    grid.longer_than = uint32_t(std::max<int64_t>(64, 4 * ceil_div(shape.entries, shape.segments)));
  }
  // Of a batch.
  int64_t blocks(const SegmentShape& shape) const {
    return ceil_div(shape.segments, int64_t((by_block ? block_threads : threads) / (grid.lanes << slots)));
  }
};

template <int V, class Functor>
Status rescale_short(const Executor& executor, const Functor& functor, const SegmentIndex& index,
                     typename Functor::Element* out, const HeldGrid<V, Functor>& held) {
  using Held = HeldGrid<V, Functor>;
  unsigned blocks = unsigned(held.blocks(index.shape));
  dim3 all(unsigned(index.shape.batches) * blocks, held.grid.over(1).y);
  auto launch = [&](auto kernel, int threads) {
    return launch_early(executor, kernel, all, threads, 0, functor, index, out, held.grid, held.slots, blocks);
  };
  if constexpr (Held::has_blocks)
    if (held.by_block) {
      constexpr int threads = Held::block_threads, rows = Held::block_rows, at_once = Held::blocks_at_once;
      return index.perm ? launch(rescale_short_segments<V, rows, threads, at_once, true, false, Functor>, threads)
                        : launch(rescale_short_segments<V, rows, threads, at_once, true, true, Functor>, threads);
    }
  constexpr int threads = Held::threads, rows = Held::rows, at_once = Held::at_once;
  return index.perm ? launch(rescale_short_segments<V, rows, threads, at_once, false, false, Functor>, threads)
                    : launch(rescale_short_segments<V, rows, threads, at_once, false, true, Functor>, threads);
}

// Of 16-bit floats the rows on their way and what a segment has take more registers than four blocks leave.
template <int V>
inline constexpr int longer_blocks = V > 4 ? 2 : 4;

// The rows of longer segments, by chunks of workers, and those of none.
template <int V, class Broadcaster>
__global__ void __launch_bounds__(segment_block, longer_blocks<V>)
    broadcast_longer_segments(Broadcaster broadcaster, SegmentIndex index, typename Broadcaster::Element* out,
                              SegmentGrid grid, LongerSegments longer) {
  using Element = typename Broadcaster::Element;
  constexpr int step = 4;
  extern __shared__ __align__(16) char memory[];
  wait_for_kernel_before();
  if (!longer.is_any()) return;
  const SegmentShape& shape = index.shape;
  SegmentBlock block(index, grid, reinterpret_cast<uint32_t*>(memory));
  const Segments& segments = block.segments;
  SegmentChunk chunk = block.chunk(grid, threadIdx.x / grid.lanes);
  int64_t batch = block.batch, worker = block.index * grid.workers + threadIdx.x / grid.lanes;
  int64_t dropped = segments.dropped(shape.rows);
  for (int64_t tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t column = (tile * grid.lanes + threadIdx.x % grid.lanes) * V;
    if (column >= shape.columns) break;
    int64_t first_x_element = batch * shape.rows * shape.columns + column;
    for (int64_t segment = chunk.first; segment <= chunk.last; ++segment) {
      if (!block.is_longer(grid, segment)) continue;
      auto part = broadcaster.template part<V>(shape.ids_batch(batch) * shape.segments + segment,
                                               (batch * shape.segments + segment) * shape.columns + column);
      int64_t end = min(chunk.end, segments.end(segment));
      for (int64_t position = max(chunk.begin, segments.begin(segment)); position < end; position += step) {
        uint32_t rows[step];
        Vector<Element, V> values[step];
        // Loads under conditions would wait for each other: those after the last row are of the last.
#pragma unroll
        for (int i = 0; i < step; ++i) rows[i] = segments.row(min(position + i, end - 1));
#pragma unroll
        for (int i = 0; i < step; ++i)
          values[i] = broadcaster.template row<V>(part, rows[i], first_x_element + int64_t(rows[i]) * shape.columns);
#pragma unroll
        for (int i = 0; i < step; ++i)
          if (position + i < end) store<V>(out + first_x_element + int64_t(rows[i]) * shape.columns, values[i]);
      }
    }
    for (int64_t i = worker; i < dropped; i += grid.blocks * grid.workers)
      store<V>(out + first_x_element + int64_t(segments.dropped_row(i)) * shape.columns, Vector<Element, V>{});
  }
}

template <int V, class Broadcaster>
Status broadcast_longer(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                        typename Broadcaster::Element* out, const LongerSegments& longer) {
  if (index.ids) return broadcast_by_ids<V>(executor, broadcaster, index, out, longer);
  SegmentGrid grid = segment_grid(index.shape, V);
  grid.items = std::min<int64_t>(grid.items, longer_blocks<V> < 4 ? 64 : grid.items);
  grid.blocks = ceil_div(index.shape.entries + index.shape.segments, grid.block_items());
  grid.longer_than = longer.longer_than;
  return launch_early(executor, broadcast_longer_segments<V, Broadcaster>, grid.over(index.shape.batches),
                      segment_block, size_t(grid.block_offsets()) * sizeof(uint32_t), broadcaster, index, out, grid,
                      longer);
}

template <class Functor>
inline constexpr bool has_held = is_float<typename Functor::Element> && sizeof(typename Functor::Element) <= 4;

// Of as many segments as keep all multiprocessors busy, and so short that what is read again is in the cache; in no
// order, of rows that are not much shorter than what memory reads at a time: of others what the segments have comes
// faster from the cache. How many batches there are does not change the order of a sum.
template <int V, class Functor>
bool is_held(const SegmentIndex& index) {
  constexpr int64_t least_on_average = 4, most_on_average = 2048, least_lanes = 1 << 17, most_bytes = 1 << 16,
                    least_bytes = V > 1 ? 16 * V : 64;
  const SegmentShape& shape = index.shape;
  int64_t row_bytes = shape.columns / V * int64_t(sizeof(typename Functor::template Row<V>));
  if (index.ids || index.sources || !index.offsets ||
      (index.perm && shape.columns * int64_t(sizeof(typename Functor::Element)) < least_bytes) ||
      shape.entries < least_on_average * shape.segments || shape.entries > most_on_average * shape.segments ||
      shape.entries * row_bytes > most_bytes * shape.segments)
    return false;
  HeldGrid<V, Functor> held(shape);
  return shape.segments * (held.grid.lanes << held.slots) * held.grid.tiles >= least_lanes;
}

}  // namespace internal
}  // namespace baracuda
