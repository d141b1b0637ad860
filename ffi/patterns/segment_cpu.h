// The segment pattern on CPU threads.
#pragma once

#include <numeric>
#include <vector>

#include "segment.h"

namespace baracuda {

// Rows per worker: enough to pay for its start, and fixed, so that results do not depend on the number of threads.
inline constexpr int64_t segment_items = 2048;

namespace internal {

// All columns of one worker's share, `tiles` states of V columns at a time.
template <int V, class Reducer>
struct SegmentColumns {
  using Element = typename Reducer::Element;
  using State = typename Reducer::template State<V>;
  static constexpr int max_tiles = 16;
  struct Partials {
    std::vector<State> head, tail;  // [batch, worker, columns / V]
  };

  const Reducer& reducer;
  const SegmentIndex& index;
  const Element* x;
  int64_t first_column, tiles, workers;
  Partials partials;

  SegmentColumns(const Reducer& reducer, const SegmentIndex& index, const Element* x, int64_t first, int64_t columns,
                 int64_t workers)
      : reducer(reducer), index(index), x(x), first_column(first), tiles(columns / V), workers(workers) {
    if (workers == 1) return;  // then no segment spans workers
    partials.head.resize(size_t(index.shape.batches * workers * tiles));
    partials.tail.resize(size_t(index.shape.batches * workers * tiles));
  }

  int64_t cell(int64_t batch, int64_t segment, int64_t tile) const {
    return (batch * index.shape.segments + segment) * index.shape.columns + first_column + tile * V;
  }
  int64_t shared_cell(int64_t batch, int64_t segment) const {
    return batch / index.shape.share * index.shape.segments + segment;
  }

  void reduce(int64_t batch, int64_t worker) {
    for (int64_t tile = 0; tile < tiles; tile += max_tiles)
      reduce(batch, worker, tile, std::min<int64_t>(max_tiles, tiles - tile));
  }

  void reduce(int64_t batch, int64_t worker, int64_t tile, int64_t count) {
    Segments segments(index, batch);
    SegmentShare share(segments, worker, segment_items);
    State states[max_tiles];
    const Element* from = x + batch * index.shape.rows * index.shape.columns + first_column + tile * V;
    State* head = partials.head.data() + (batch * workers + worker) * tiles + tile;
    State* tail = partials.tail.data() + (batch * workers + worker) * tiles + tile;
    auto take = [&](int64_t begin, int64_t end) {
      for (int64_t t = 0; t < count; ++t) reducer.start(states[t]);
      for (int64_t position = begin; position < end; ++position) {
        uint32_t row = segments.row(position);
        const Element* values = from + int64_t(row) * index.shape.columns;
        for (int64_t t = 0; t < count; ++t) reducer.push(states[t], values + t * V, row);
      }
    };
    int64_t position = share.begin;
    for (int64_t s = share.first; s < share.last; ++s) {
      int64_t end = segments.end(s);
      bool has_rows = end > segments.begin(s);
      take(position, end);
      for (int64_t t = 0; t < count; ++t) {
        if (s == share.first && share.has_head)
          head[t] = states[t];
        else if (has_rows)
          reducer.finish(states[t], shared_cell(batch, s), cell(batch, s, tile + t));
        else
          reducer.template empty<V>(shared_cell(batch, s), cell(batch, s, tile + t));
      }
      position = end;
    }
    if (!share.has_tail) return;
    take(position, share.end);
    std::copy(states, states + count, tail);
  }

  // The last worker of a segment that spans several puts its parts together.
  void join(int64_t batch, int64_t worker) {
    Segments segments(index, batch);
    SegmentShare share(segments, worker, segment_items);
    if (!share.has_head) return;
    int64_t first = segments.first_item(share.first) / segment_items;
    for (int64_t t = 0; t < tiles; ++t) {
      State state;
      reducer.start(state);
      for (int64_t w = first; w < worker; ++w) reducer.merge(state, partials.tail[(batch * workers + w) * tiles + t]);
      reducer.merge(state, partials.head[(batch * workers + worker) * tiles + t]);
      reducer.finish(state, shared_cell(batch, share.first), cell(batch, share.first, t));
    }
  }

  void run(const Executor& executor) {
    if (tiles == 0) return;
    int64_t cost = std::min(segment_items, index.shape.rows + index.shape.segments) * tiles * V;
    parallel_for(executor, index.shape.batches * workers, cost,
                 [&](int64_t task) { reduce(task / workers, task % workers); });
    for (int64_t batch = 0; batch < index.shape.batches; ++batch)
      for (int64_t worker = 0; worker < workers; ++worker) join(batch, worker);
  }
};

}  // namespace internal

template <class Reducer>
Status reduce_segments(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                       const typename Reducer::Element* x) {
  const SegmentShape& shape = index.shape;
  if (shape.batches * shape.segments * shape.columns == 0) return {};
  constexpr int V = 64 / sizeof(typename Reducer::Element) < 16 ? 64 / sizeof(typename Reducer::Element) : 16;
  int64_t workers = ceil_div(shape.rows + shape.segments, segment_items);
  int64_t wide = shape.columns / V * V;
  internal::SegmentColumns<V, Reducer>(reducer, index, x, 0, wide, workers).run(executor);
  internal::SegmentColumns<1, Reducer>(reducer, index, x, wide, shape.columns - wide, workers).run(executor);
  return {};
}

// A stable counting sort by segment; rows of no segment go last. Where `perm` is null the ids are sorted already.
template <class Id>
Status index_segments(const Executor& executor, const Id* all_ids, int64_t batches, int64_t rows, int64_t segments,
                      uint32_t* perm, uint32_t* offsets) {
  auto lower_bound = [&](const Id* ids, int64_t value) {
    return std::partition_point(ids, ids + rows, [=](Id id) { return int64_t(id) < value; }) - ids;
  };
  parallel_for(executor, batches, rows + segments, [&](int64_t batch) {
    const Id* ids = all_ids + batch * rows;
    uint32_t* first = offsets + batch * (segments + 1);
    if (perm == nullptr) {
      for (int64_t s = 0; s <= segments; ++s) first[s] = uint32_t(lower_bound(ids, s));
      return;
    }
    auto slot = [=](Id id) { return id >= 0 && int64_t(id) < segments ? int64_t(id) : segments; };
    std::vector<uint32_t> next(size_t(segments) + 1, 0);
    for (int64_t row = 0; row < rows; ++row) ++next[slot(ids[row])];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), uint32_t(0));
    std::copy(next.begin(), next.end(), first);
    uint32_t* to = perm + batch * rows;
    for (int64_t row = 0; row < rows; ++row) to[next[slot(ids[row])]++] = uint32_t(row);
  });
  return {};
}

}  // namespace baracuda
