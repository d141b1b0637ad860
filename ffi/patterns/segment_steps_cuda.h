// One lane's part of a worker's chunk of the segment pattern, where segments are long and entries name rows: many rows
// of one segment at a time, and so few instructions a row, which is what counts where rows come from the cache.
#pragma once

#include <algorithm>

#include "segment_stream_cuda.h"

namespace baracuda {
namespace internal {

template <int V, class Reducer, int step>
struct SegmentSteps : SegmentStream<V, Reducer, step> {
  using Base = SegmentStream<V, Reducer, step>;
  using typename Base::Element, typename Base::More;
  // A row as it comes: where it has more than four elements the compiler would take it apart at once, and so wait for
  // it before the next is loaded.
  using Words = std::conditional_t<sizeof(Vector<Element, V>) == 16, uint4, Vector<Element, V>>;

  uint32_t longer_than = 0;  // as the grid says

  // Begins the next segment that is longer, at `next` or after it, and says where its rows are in the chunk; the
  // chunk's end where there is none.
  __device__ uint32_t begin_longer(int32_t next, uint32_t position) {
    const WorkerChunk& chunk = this->chunk;
    while (next < chunk.last && this->segments.length(next) <= longer_than) ++next;
    if (next == chunk.last && !chunk.has_tail) return chunk.end;
    this->end = this->segments.offsets[next];
    this->open(next);
    return max(this->begin, position);
  }
  // Ends the segments whose rows end at `position`, and says where the next rows are.
  __device__ uint32_t end_at(uint32_t position) {
    if (longer_than == 0) {
      this->close(position);
      return position;
    }
    if (this->segment == this->chunk.last) return position;
    this->write();
    return begin_longer(this->segment + 1, position);
  }
  __device__ void run(const Element* x) {
    const Segments& segments = this->segments;
    const WorkerChunk& chunk = this->chunk;
    uint32_t position = chunk.begin;
    if (longer_than > 0 && !chunk.has_head) {
      position = begin_longer(chunk.first, position);
    } else {
      this->end = chunk.first < segments.count ? segments.offsets[chunk.first] : chunk.begin;
      this->open(chunk.first);
      if (longer_than == 0 || position >= this->end) position = end_at(position);
    }
    x += this->first_x_element;
    while (position < chunk.end) {
      uint32_t numbers[step], sources[step];
      // In range also where offsets are not in order.
      uint32_t stop = this->end > position ? min(this->end, chunk.end) : chunk.end, left = stop - position;
      // Loads under conditions would wait for each other: those after the last row are of the last.
#pragma unroll
      for (int i = 0; i < step; ++i) {
        uint32_t at = min(position + i, stop - 1);
        numbers[i] = segments.row(at), sources[i] = segments.source(at, numbers[i]);
      }
      Words values[step];
      More more[step];
#pragma unroll
      for (int i = 0; i < step; ++i) {
        int64_t offset = sources[i] < segments.source_rows ? int64_t(sources[i]) * this->columns : 0;
        values[i] = *reinterpret_cast<const Words*>(x + offset);
        more[i] = more_of<V>(this->reducer, SegmentRow{numbers[i], this->first_index + numbers[i], this->column,
                                                       this->first_x_element + offset});
      }
#pragma unroll
      for (int i = 0; i < step; ++i)
        if (i < left && sources[i] < segments.source_rows) {
          Vector<Element, V> value;
          memcpy(&value, &values[i], sizeof(value));
          push_row(this->reducer, this->state, value.lane, numbers[i], more[i]);
        }
      position += min(left, uint32_t(step));
      if (position >= this->end) position = end_at(position);
    }
  }
};

// Four blocks on a multiprocessor have enough loads in flight to use all of the memory's bandwidth. Fewer are faster
// where their registers would not hold a state and the rows on their way, with what these bring along, or what the
// reducer does at the end of a segment: then it says how many at most.
template <int V, int step, class Reducer>
constexpr int blocks_at_once() {
  using More = typename SegmentStream<V, Reducer, step>::More;
  constexpr size_t more = std::is_same_v<More, NoMore> ? 0 : sizeof(More);
  constexpr size_t bytes =
      sizeof(typename Reducer::template State<V>) + step * (sizeof(Vector<typename Reducer::Element, V>) + more);
  int blocks = bytes > 148 ? 2 : bytes > 80 || more > 0 ? 3 : 4;
  if constexpr (requires { Reducer::most_blocks; }) return std::min(blocks, Reducer::most_blocks);
  return blocks;
}

// What a row on its way brings along, in bytes.
template <int V, class Reducer>
inline constexpr size_t more_bytes = sizeof(typename SegmentStream<V, Reducer, 1>::More);

// As many as registers hold next to a state.
template <int V, class Reducer>
inline constexpr int rows_of_step =
    sizeof(typename Reducer::template State<V>) > 20 || more_bytes<V, Reducer> > 4 ? 4 : 8;

// Of types whose rows come fast enough that instructions count, and of states and what rows bring along that take few
// registers.
template <int V, class Reducer>
inline constexpr bool has_groups =
    is_float<typename Reducer::Element> && sizeof(typename Reducer::Element) <= 4 &&
    sizeof(typename Reducer::template State<V>) <= 12 * V && more_bytes<V, Reducer> <= 16;
template <int V, class Reducer>
inline constexpr bool has_steps = has_groups<V, Reducer> && V > 1 && more_bytes<V, Reducer> <= 4;

}  // namespace internal
}  // namespace baracuda
