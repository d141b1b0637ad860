// One lane's part of a worker's chunk of the segment pattern.
#pragma once

#include "segment.h"

namespace baracuda {
namespace internal {

// What a worker knows of its chunk, in 32 bits: registers are what rows on their way need.
struct WorkerChunk {
  uint32_t begin, end;  // positions
  int32_t first, last;  // segments
  bool has_head, has_tail;

  __device__ explicit WorkerChunk(const SegmentChunk& chunk)
      : begin(uint32_t(chunk.begin)),
        end(uint32_t(chunk.end)),
        first(int32_t(chunk.first)),
        last(int32_t(chunk.last)),
        has_head(chunk.has_head),
        has_tail(chunk.has_tail) {}
};

// Out of line: inside a stream it would take registers from rows on their way.
template <int V, class Reducer>
__noinline__ __device__ void write_empty(const Reducer reducer, int64_t segment, int64_t element) {
  reducer.template empty<V>(segment, element);
}

// One lane's part of a worker's chunk. The rows stream by in steps of the same size wherever segments end, so that the
// workers of a warp stay together, and the rows of the next step are known before this one's have come.
template <int V, class Reducer, int step>
struct SegmentStream {
  using Base = SegmentStream;
  static constexpr int rows_at_once = step;
  using Element = typename Reducer::Element;
  using State = typename Reducer::template State<V>;
  using More = decltype(more_of<V>(std::declval<const Reducer&>(), SegmentRow{}));

  const Reducer& reducer;
  Segments segments;
  WorkerChunk chunk;
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
  // Writes what the segment has, or the worker's part of it.
  __device__ void write() {
    if (segment == chunk.first && chunk.has_head)
      *head = state;
    else if (end > begin)
      reducer.finish(state, SegmentRows{segments.perm, segments.sources, segments.source_rows, begin, end},
                     shared + segment, element + int64_t(segment) * columns);
    else
      write_empty<V>(reducer, shared + segment, element + int64_t(segment) * columns);
  }
  // Ends every segment whose rows end at `position`.
  __device__ void close(uint32_t position) {
    while (segment < chunk.last && end <= position) {
      write();
      open(segment + 1);
    }
  }
  __device__ void run(const Element* x) {
    end = chunk.first < segments.count ? segments.offsets[chunk.first] : chunk.begin;
    open(chunk.first);
    close(chunk.begin);
    if (chunk.begin >= chunk.end) return;
    uint32_t rows[step], next[step], next_sources[step], position = chunk.begin;
    // Loads under conditions would wait for each other: those after the last row are of the last.
    auto look_up = [&](int i, uint32_t at) {
      at = min(at, chunk.end - 1);
      next[i] = segments.row(at);
      next_sources[i] = segments.source(at, next[i]);
    };
#pragma unroll
    for (int i = 0; i < step; ++i) look_up(i, position + i);
    for (int64_t left = int64_t(chunk.end) - position; left > 0; left -= step, position += step) {
      Vector<Element, V> values[step];
      More more[step];
      bool is_row[step];
#pragma unroll
      for (int i = 0; i < step; ++i) {
        rows[i] = next[i], is_row[i] = next_sources[i] < segments.source_rows;
        int64_t x_element = first_x_element + int64_t(is_row[i] ? next_sources[i] : 0) * columns;
        values[i] = load<V>(x + x_element);
        more[i] = more_of<V>(reducer, SegmentRow{rows[i], first_index + rows[i], column, x_element});
      }
#pragma unroll
      for (int i = 0; i < step; ++i) look_up(i, position + step + i);
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (i < left) {
          if (is_row[i]) push_row(reducer, state, values[i].lane, rows[i], more[i]);
          if (position + i + 1 >= end) close(position + i + 1);
        }
    }
  }
};

}  // namespace internal
}  // namespace baracuda
