// Segments whose rows' order is known, by lanes: of a short segment by one group of them, of a longer one by all groups
// of a block, which are joined in order.
#pragma once

#include "segment_blocks_cuda.h"
#include "segment_stream_cuda.h"

namespace baracuda {
namespace internal {

// A lane's columns of segments of a batch.
template <int V, int step, class Reducer>
struct SegmentLane {
  using Element = typename Reducer::Element;
  using State = typename Reducer::template State<V>;
  using More = decltype(more_of<V>(std::declval<const Reducer&>(), SegmentRow{}));
  // A row as it comes: where it has more than four elements the compiler would take it apart at once, and so wait for
  // it before the next is loaded.
  using Words = std::conditional_t<sizeof(Vector<Element, V>) == 16, uint4, Vector<Element, V>>;

  const Reducer& reducer;
  const uint32_t *perm, *sources;
  uint32_t source_rows;
  const Element* x;                                             // the batch's
  int64_t columns, column, first_x_element, first_index, base;  // base: the batch's first element of the result
  int64_t shared;                                               // the batch's first segment, of what columns share

  // The rows at positions [position, end), in order.
  __device__ void add(State& state, uint32_t position, uint32_t end) const {
    for (; position < end; position += step) {
      uint32_t numbers[step], rows[step], left = end - position;
      Words values[step];
      More more[step];
      load(numbers, rows, values, more, position, end);
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (i < left) push(state, numbers[i], rows[i], values[i], more[i]);
    }
  }
  // Loads under conditions would wait for each other: those after the last row are of the last.
  __device__ void load(uint32_t (&numbers)[step], uint32_t (&rows)[step], Words (&values)[step], More (&more)[step],
                       uint32_t position, uint32_t end) const {
#pragma unroll
    for (int i = 0; i < step; ++i) {
      uint32_t at = min(position + i, end - 1);
      numbers[i] = perm ? perm[at] : at, rows[i] = sources ? sources[at] : numbers[i];
    }
#pragma unroll
    for (int i = 0; i < step; ++i) {
      int64_t offset = (rows[i] < source_rows ? int64_t(rows[i]) * columns : 0) + column;
      values[i] = *reinterpret_cast<const Words*>(x + offset);
      more[i] = more_of<V>(reducer, SegmentRow{numbers[i], first_index + numbers[i], column, first_x_element + offset});
    }
  }
  __device__ void push(State& state, uint32_t number, uint32_t row, const Words& words, const More& more) const {
    if (row >= source_rows) return;
    Vector<Element, V> value;
    memcpy(&value, &words, sizeof(value));
    push_row(reducer, state, value.lane, number, more);
  }
  __device__ void finish(const State& state, int64_t segment, uint32_t begin, uint32_t end) const {
    reducer.finish(state, SegmentRows{perm, sources, source_rows, begin, end}, shared + segment, element(segment));
  }
  __device__ void empty(int64_t segment) const { reducer.template empty<V>(shared + segment, element(segment)); }
  __device__ int64_t element(int64_t segment) const { return base + segment * columns + column; }

  // The rows at [begin, end), by all threads of the block, for its first group; `memory` has a state for each thread.
  __device__ State add_by_block(State* memory, const SegmentGrid& grid, bool in_range, uint32_t begin,
                                uint32_t end) const {
    uint32_t each = (end - begin + grid.workers - 1) / grid.workers, group = threadIdx.x / grid.lanes,
             from = min(begin + group * each, end), groups = (end - begin + each - 1) / each;
    State state;
    reducer.start(state);
    if (in_range) add(state, from, min(from + each, end));
    memory[threadIdx.x] = state;
    __syncthreads();
    if (in_range && group == 0)
      for (uint32_t g = 1; g < groups; ++g) reducer.merge(state, memory[g * grid.lanes + threadIdx.x]);
    __syncthreads();
    return state;
  }
};

template <int V, int step, class Reducer>
__device__ SegmentLane<V, step, Reducer> lane_of(const Reducer& reducer, const SegmentIndex& index, int64_t batch,
                                                 const uint32_t* perm, const uint32_t* sources,
                                                 const typename Reducer::Element* x, int64_t column) {
  const SegmentShape& shape = index.shape;
  int64_t first = batch * shape.rows * shape.columns;
  return {reducer,
          perm,
          sources,
          index.source_rows,
          x + first,
          shape.columns,
          column,
          first,
          batch * shape.entries,
          batch * shape.segments * shape.columns,
          shape.ids_batch(batch) * shape.segments};
}

}  // namespace internal
}  // namespace baracuda
