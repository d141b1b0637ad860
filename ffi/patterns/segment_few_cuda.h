// Segment reductions of few rows in one kernel: a block has a range of segments, and some of the columns. Where there
// is no index it orders the rows of its segments by their ids, in shared memory. A short segment is reduced by a
// worker, which is a group of lanes, a longer one by the workers of a warp, or of the block: how many depends on its
// length alone.
#pragma once

#include <algorithm>

#include "early_cuda.h"
#include "segment_index_ranges_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int few_threads = 512, few_warps = few_threads / 32;
inline constexpr uint32_t few_rows_of_worker = 24, few_rows_of_warp = 256;  // of a segment, at most

// Few enough that each block can look through all ids. Python decides by the same numbers. How many batches there are
// has no part in it, so that the sums of a batch have one order.
inline bool is_few(const SegmentShape& shape) {
  constexpr int64_t most_rows = 16384, most_segments = 32768, most_elements = 1 << 21;
  return shape.entries <= most_rows && shape.segments <= most_segments &&
         (shape.entries + shape.segments) * shape.columns <= most_elements;
}

// Fixed by the shapes.
struct FewGrid {
  int lanes;         // of a worker; a tile is lanes * V columns
  int tiles;         // of all columns
  int tile_blocks;   // that share a range
  int range;         // segments of a block
  int ranges;        // of a batch
  int rows_of_warp;  // of all ids
};

// All multiprocessors have a block, of some batch. Narrow tiles keep many of them busy with one long segment.
inline FewGrid few_grid(const SegmentShape& shape, int width, int itemsize) {
  constexpr int64_t wanted_blocks = 132, tile_bytes = 128, most_tile_blocks = 8;
  FewGrid grid;
  grid.lanes = 1;
  while (grid.lanes < 32 && grid.lanes * width * itemsize < tile_bytes && grid.lanes * width < shape.columns)
    grid.lanes *= 2;
  grid.tiles = int(ceil_div(shape.columns, grid.lanes * width));
  int64_t blocks = std::max<int64_t>(1, wanted_blocks / shape.batches);
  grid.tile_blocks = int(std::min({int64_t(grid.tiles), most_tile_blocks, blocks}));
  int64_t wanted = std::min(blocks / grid.tile_blocks, shape.segments);
  grid.range = int(std::min(ceil_div(shape.segments, wanted), most_of_range));
  grid.ranges = int(ceil_div(shape.segments, grid.range));
  grid.rows_of_warp = int(ceil_div(shape.entries, few_warps));
  return grid;
}

// What a block knows of its segments' rows, in shared memory. Where there are ids, what orders them comes after.
template <class State>
struct FewMemory {
  State states[few_threads];  // of segments that several workers reduce
  uint32_t offsets[most_of_range + 1];
  int is_longer;      // whether a segment is more than a worker's
  uint32_t first[1];  // the order of rows, then their sources, where they are other rows

  // Up to what orders ids, whose lists are where the sources go.
  static __host__ __device__ size_t order_bytes(int64_t entries) {
    return (sizeof(FewMemory) + size_t(entries) * sizeof(uint32_t) + 15) / 16 * 16;
  }
};

// The segments [first, first + count) of a batch.
template <class State>
struct FewRows {
  FewMemory<State>& memory;
  const uint32_t* sources;

  __device__ FewRows(FewMemory<State>& memory, char* more, const SegmentIndex& index, const FewGrid& grid,
                     int64_t of_ids, int first, int count)
      : memory(memory), sources(nullptr) {
    if (threadIdx.x == 0) memory.is_longer = memory.offsets[0] = 0;
    uint32_t* order = memory.first;
    auto& range = *reinterpret_cast<RangeMemory<few_threads>*>(more);
    uint32_t* to = range.first;
    if (index.ids) {
      SegmentKeys<int32_t, uint32_t> keys{index.ids, 1, index.shape.entries, index.shape.segments};
      order_range(
          range, keys, of_ids, grid.rows_of_warp, first, count,
          [&](int segment, uint32_t, uint32_t position, uint32_t length) {
            memory.offsets[segment + 1] = position + length;
            if (length > few_rows_of_worker) memory.is_longer = 1;
          },
          [&](uint32_t, uint32_t position, uint32_t row) { order[position] = row; });
      if (index.has_sources()) {
        uint32_t rows = memory.offsets[count];
        for (uint32_t i = threadIdx.x; i < rows; i += few_threads) to[i] = known(index, index.source(of_ids, order[i]));
      }
    } else {
      const uint32_t* offsets = index.offsets + of_ids * (index.shape.segments + 1) + first;
      uint32_t begin = offsets[0], rows = max(offsets[count], begin) - begin;
      int64_t from = of_ids * index.shape.entries + begin;
      // In range also where they are not in order.
      for (int i = threadIdx.x; i <= count; i += few_threads)
        memory.offsets[i] = min(max(offsets[i], begin) - begin, rows);
      for (uint32_t i = threadIdx.x; i < rows; i += few_threads) {
        order[i] = index.perm ? index.perm[from + i] : begin + i;
        if (index.sources) to[i] = known(index, index.sources[from + i]);
      }
      __syncthreads();
      for (int i = threadIdx.x; i < count; i += few_threads)
        if (length(i) > few_rows_of_worker) memory.is_longer = 1;
    }
    if (index.has_sources()) sources = to;
    if (index.has_sources() || !index.ids) __syncthreads();
  }

  static __device__ uint32_t known(const SegmentIndex& index, uint32_t source) {
    return source < index.source_rows ? source : no_row;
  }
  __device__ uint32_t length(int segment) const {
    uint32_t begin = memory.offsets[segment], end = memory.offsets[segment + 1];
    return max(end, begin) - begin;
  }
};

// One lane's part of a tile of columns.
template <int V, int step, class Reducer>
struct FewTile {
  using Element = typename Reducer::Element;
  using State = typename Reducer::template State<V>;
  // A row as it comes: where it has more than four elements the compiler would take it apart at once, and so wait for
  // it before the next is loaded.
  using Words = std::conditional_t<sizeof(Vector<Element, V>) == 16, uint4, Vector<Element, V>>;
  using More = decltype(more_of<V>(std::declval<const Reducer&>(), SegmentRow{}));

  const Reducer& reducer;
  const FewRows<State>& rows;
  const Element* x;  // the batch's first row, at the lane's column
  int64_t columns, column, first_x_element, first_index, shared_segment, element;
  int lanes;
  bool in_range;  // otherwise the lane has no columns, and reduces no row

  // Of the rows at positions [begin, end).
  __device__ State reduce(uint32_t begin, uint32_t end) const {
    if (!in_range) end = begin;
    State state;
    reducer.start(state);
    for (uint32_t position = begin; position < end; position += step) {
      uint32_t number[step];
      bool is_row[step];
      Words values[step];
      More more[step];
      // Loads under conditions would wait for each other.
#pragma unroll
      for (int i = 0; i < step; ++i) {
        uint32_t at = min(position + i, end - 1), source = number[i] = rows.memory.first[at];
        if (rows.sources) source = rows.sources[at];
        is_row[i] = position + i < end && source != no_row;
        int64_t offset = int64_t(source == no_row ? 0 : source) * columns;
        values[i] = *reinterpret_cast<const Words*>(x + offset);
        more[i] = more_of<V>(reducer, SegmentRow{number[i], first_index + number[i], column, first_x_element + offset});
      }
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (is_row[i]) {
          Vector<Element, V> value;
          memcpy(&value, &values[i], sizeof(value));
          push_row(reducer, state, value.lane, number[i], more[i]);
        }
    }
    return state;
  }
  __device__ void finish(const State& state, int segment) const {
    if (!in_range) return;
    uint32_t begin = rows.memory.offsets[segment], end = rows.memory.offsets[segment + 1];
    if (end > begin)
      reducer.finish(state, SegmentRows{rows.memory.first, rows.sources, no_row, begin, end}, shared_segment + segment,
                     element + segment * columns);
    else
      reducer.template empty<V>(shared_segment + segment, element + segment * columns);
  }
  // The part of a segment that one of `workers` has: they have about equally many rows, in order.
  __device__ State part(int segment, uint32_t worker, uint32_t workers) const {
    uint32_t begin = rows.memory.offsets[segment], each = (rows.length(segment) + workers - 1) / workers,
             end = rows.memory.offsets[segment + 1];
    uint32_t from = min(begin + worker * each, end);
    return reduce(from, min(from + each, end));
  }
  // The states of this thread's lane, of workers that are `stride` threads apart.
  __device__ State merge(int first, int stride, int count) const {
    State state = rows.memory.states[first];
    for (int k = 1; k < count; ++k) reducer.merge(state, rows.memory.states[first + k * stride]);
    return state;
  }

  __device__ void by_workers(int count) const {
    for (int segment = int(threadIdx.x) / lanes; segment < count; segment += few_threads / lanes)
      if (uint32_t length = rows.length(segment); length <= few_rows_of_worker) {
        uint32_t begin = rows.memory.offsets[segment];
        finish(reduce(begin, begin + length), segment);
      }
  }
  __device__ void by_warps(int count) const {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int segment = warp; segment < count; segment += few_warps) {
      uint32_t length = rows.length(segment);
      if (length <= few_rows_of_worker || length > few_rows_of_warp) continue;
      rows.memory.states[threadIdx.x] = part(segment, lane / lanes, 32 / lanes);
      __syncwarp();
      if (lane < lanes) finish(merge(threadIdx.x, lanes, 32 / lanes), segment);
      __syncwarp();
    }
  }
  __device__ void by_blocks(int count) const {
    int lane = threadIdx.x % 32;
    for (int segment = 0; segment < count; ++segment) {
      if (rows.length(segment) <= few_rows_of_warp) continue;
      rows.memory.states[threadIdx.x] = part(segment, threadIdx.x / lanes, few_threads / lanes);
      __syncwarp();
      if (lane < lanes) rows.memory.states[threadIdx.x] = merge(threadIdx.x, lanes, 32 / lanes);
      __syncthreads();
      if (threadIdx.x < lanes) finish(merge(threadIdx.x, 32, few_warps), segment);
      __syncthreads();
    }
  }
};

template <int V, int step, class Reducer>
__global__ void __launch_bounds__(few_threads, 1)
    reduce_few_rows(Reducer reducer, SegmentIndex index, const typename Reducer::Element* x, FewGrid grid) {
  using State = typename Reducer::template State<V>;
  extern __shared__ __align__(16) char bytes[];
  auto& memory = *reinterpret_cast<FewMemory<State>*>(bytes);
  const SegmentShape& shape = index.shape;
  next_may_begin();
  wait_for_kernel_before();
  int batch = blockIdx.x / grid.ranges, first = int(blockIdx.x - batch * grid.ranges) * grid.range,
      count = min(grid.range, int(shape.segments) - first);
  int64_t of_ids = shape.ids_batch(batch);
  FewRows<State> rows(memory, bytes + FewMemory<State>::order_bytes(shape.entries), index, grid, of_ids, first, count);
  for (int tile = blockIdx.y; tile < grid.tiles; tile += gridDim.y) {
    int64_t column = int64_t(tile * grid.lanes + threadIdx.x % grid.lanes) * V;
    int64_t first_x_element = batch * shape.rows * shape.columns + column;
    FewTile<V, step, Reducer> part{reducer,
                                   rows,
                                   x + first_x_element,
                                   shape.columns,
                                   column,
                                   first_x_element,
                                   batch * shape.entries,
                                   of_ids * shape.segments + first,
                                   (batch * shape.segments + first) * shape.columns + column,
                                   grid.lanes,
                                   column < shape.columns};
    part.by_workers(count);
    if (!memory.is_longer) continue;
    part.by_warps(count);
    part.by_blocks(count);
  }
}

template <int V, class Reducer>
Status reduce_few(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                  const typename Reducer::Element* x) {
  using Element = typename Reducer::Element;
  using State = typename Reducer::template State<V>;
  constexpr int step = sizeof(State) > 32 ? 4 : 8;
  const SegmentShape& shape = index.shape;
  FewGrid grid = few_grid(shape, V, sizeof(Element));
  size_t bytes = FewMemory<State>::order_bytes(shape.entries);
  if (index.ids)
    bytes += RangeMemory<few_threads>::bytes(grid.rows_of_warp, grid.range);
  else if (index.sources)
    bytes += sizeof(RangeMemory<few_threads>) + size_t(shape.entries) * sizeof(uint32_t);
  auto kernel = reduce_few_rows<V, step, Reducer>;
  if (Status status = allow_dynamic_memory(kernel, bytes); !status.ok()) return status;
  dim3 blocks(unsigned(shape.batches * grid.ranges), unsigned(grid.tile_blocks));
  return launch_early(executor, kernel, blocks, few_threads, bytes, reducer, index, x, grid);
}

}  // namespace internal
}  // namespace baracuda
