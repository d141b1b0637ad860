// The segment pattern on CPU threads.
#pragma once

#include <numeric>
#include <vector>

#include "segment.h"
#include "vectorize_cpu.h"

namespace baracuda {

// Rows per worker: enough to pay for its start, and fixed, so that results do not depend on the number of threads.
inline constexpr int64_t segment_items = 2048;

// A stable counting sort by segment; rows of no segment go last. Where `perm` is null the ids are sorted already.
template <class Id>
Status index_segments(const Executor& executor, const Id* all_ids, int64_t batches, int64_t rows, int64_t segments,
                      uint32_t* perm, uint32_t* offsets) {
  parallel_for(executor, batches, rows + segments, [&](int64_t batch) {
    const Id* ids = all_ids + batch * rows;
    uint32_t* first = offsets + batch * (segments + 1);
    if (perm == nullptr) {
      int64_t s = 0;
      for (int64_t row = 0; row < rows; ++row)
        for (; s <= segments && s <= int64_t(ids[row]); ++s) first[s] = uint32_t(row);
      std::fill(first + s, first + segments + 1, uint32_t(rows));
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

namespace internal {

// The index of rows that came with ids.
struct OrderedIds {
  std::vector<uint32_t> perm, offsets, sources;
  SegmentIndex index;

  OrderedIds(const Executor& executor, const SegmentIndex& by_ids) : index(by_ids) {
    const SegmentShape& shape = index.shape;
    int64_t batches = shape.batches / shape.sharing;
    perm.resize(size_t(batches * shape.entries)), offsets.resize(size_t(batches * (shape.segments + 1)));
    index_segments(executor, index.ids, batches, shape.entries, shape.segments, perm.data(), offsets.data());
    if (index.has_sources()) {
      sources.resize(perm.size());
      for (int64_t batch = 0; batch < batches; ++batch)
        for (int64_t i = batch * shape.entries; i < (batch + 1) * shape.entries; ++i)
          sources[size_t(i)] = index.source(batch, perm[size_t(i)]);
      index.sources = sources.data();
    }
    index.perm = perm.data(), index.offsets = offsets.data(), index.ids = nullptr;
  }
};

// Columns that are 256 bytes at most, whose State is four to eight registers. Fewer would read a row in more chunks,
// each of which the processor waits for.
template <class Reducer>
constexpr int segment_width() {
  constexpr int most = 8 * internal::vector_bytes;  // of a State
  int width = 64;
  while (sizeof(typename Reducer::Element) * width > 256 || sizeof(typename Reducer::template State<1>) * width > most)
    width /= 2;
  return width;
}

// A row in tiles of W columns and narrower ones of what is left: body(width, column, slot). If a column may be given
// again, with the same bits, a tile that would pass the end of a row begins earlier instead. Slots do not overlap, and
// end before columns + 16.
template <int W, bool again, class Body>
void each_tile(int64_t columns, const Body& body, int64_t first = 0) {
  for (; first + W <= columns; first += W) body(std::integral_constant<int, W>(), first, first);
  if constexpr (W > 16) return each_tile<W / 2, again>(columns, body, first);
  if constexpr (W > 1) {
    if (first == columns) return;
    if (again && columns >= W) return body(std::integral_constant<int, W>(), columns - W, first);
    each_tile<(W > 4 ? 4 : 1), again>(columns, body, first);
  }
}

// Whether a reducer may write what it read, and so a result once only.
template <class Reducer>
constexpr bool writes_in_place() {
  if constexpr (requires { Reducer::in_place; })
    return Reducer::in_place;
  else
    return false;
}

// The segments of a worker one after the other, each in tiles of columns.
template <class Reducer>
struct SegmentReduction {
  using Element = typename Reducer::Element;
  template <int W>
  using State = typename Reducer::template State<W>;
  using Slot = State<1>;

  template <bool of_sources>
  struct Order {
    const uint32_t* rows;
    uint32_t operator()(int64_t position) const { return rows[position]; }
  };
  struct InOrder {
    uint32_t operator()(int64_t position) const { return uint32_t(position); }
  };

  const Reducer& reducer;
  const SegmentIndex& index;
  const Element* x;
  int64_t workers, slots;
  std::vector<Slot> heads, tails;  // [batch, worker, slot]

  SegmentReduction(const Reducer& reducer, const SegmentIndex& index, const Element* x, int64_t workers)
      : reducer(reducer), index(index), x(x), workers(workers), slots(index.shape.columns + 16) {
    if (workers == 1) return;  // then no segment spans workers
    heads.resize(size_t(index.shape.batches * workers * slots));
    tails.resize(size_t(index.shape.batches * workers * slots));
  }

  template <class Body>
  void each_tile(const Body& body) const {
    internal::each_tile<segment_width<Reducer>(), !writes_in_place<Reducer>()>(index.shape.columns, body);
  }
  int64_t element(int64_t batch, int64_t segment, int64_t column) const {
    return (batch * index.shape.segments + segment) * index.shape.columns + column;
  }
  int64_t shared_element(int64_t batch, int64_t segment) const {
    return index.shape.ids_batch(batch) * index.shape.segments + segment;
  }
  // A state of W columns takes no more than W of one.
  template <int W>
  static void keep(Slot* slot, const State<W>& state) {
    static_assert(sizeof(state) <= W * sizeof(Slot));
    memcpy(static_cast<void*>(slot), &state, sizeof(state));
  }
  template <int W>
  static State<W> kept(const Slot* slot) {
    State<W> state;
    memcpy(static_cast<void*>(&state), slot, sizeof(state));
    return state;
  }

  template <int W>
  State<W> take(const Segments& segments, int64_t batch, int64_t column, int64_t begin, int64_t end) const {
    if (segments.sources) return take_from<W>(segments, batch, column, begin, end, Order<true>{segments.sources});
    if (segments.perm) return take_from<W>(segments, batch, column, begin, end, Order<false>{segments.perm});
    return take_from<W>(segments, batch, column, begin, end, InOrder());
  }

  // How many rows ahead a processor sees is up to how few instructions a row takes. Rows that no entry skips are pushed
  // in a loop of their own, whose state stays in registers.
  template <int W, class Rows>
  State<W> take_from(const Segments& segments, int64_t batch, int64_t column, int64_t begin, int64_t end,
                     const Rows& order) const {
    constexpr int64_t ahead = 8;
    int64_t columns = index.shape.columns, last = std::max<int64_t>(segments.last_row, 1) - 1;
    int64_t first_element = batch * index.shape.rows * columns + column, first_entry = batch * index.shape.entries;
    uint32_t rows = segments.source_rows;
    const uint32_t* perm = segments.perm;
    const Element* data = x + first_element;
    State<W> state;
    reducer.start(state);
    for (int64_t position = begin; position < end; ++position) {
      for (uint32_t source; position < end && (source = order(position)) < rows; ++position) {
        // Rows in another order than their own are anywhere in memory: the processor can't foresee them.
        if constexpr (!std::is_same_v<Rows, InOrder>) {
          uint32_t later = order(std::min(position + ahead, last));
          const Element* soon = data + int64_t(later < rows ? later : source) * columns;
          for (int k = 0; k < W; k += 64 / sizeof(Element)) __builtin_prefetch(soon + k);
        }
        int64_t offset = int64_t(source) * columns;
        uint32_t number = source;
        if constexpr (std::is_same_v<Rows, Order<true>>) number = perm ? perm[position] : uint32_t(position);
        SegmentRow row{number, first_entry + number, column, first_element + offset};
        push_row(reducer, state, data + offset, number, more_of<W>(reducer, row));
      }
    }
    return state;
  }

  void reduce(int64_t batch, int64_t worker) {
    Segments segments(index, batch);
    SegmentChunk chunk(segments, worker, segment_items);
    int64_t position = chunk.begin, first_slot = (batch * workers + worker) * slots;
    for (int64_t s = chunk.first; s < chunk.last; ++s) {
      int64_t end = segments.end(s);
      bool is_head = s == chunk.first && chunk.has_head, is_empty = end <= segments.begin(s);
      each_tile([=, this, &segments](auto width, int64_t column, int64_t slot) {
        constexpr int W = decltype(width)::value;
        if (is_empty && !is_head) return reducer.template empty<W>(shared_element(batch, s), element(batch, s, column));
        State<W> state = take<W>(segments, batch, column, position, end);
        if (is_head) return keep<W>(&heads[size_t(first_slot + slot)], state);
        reducer.finish(state, segments.rows(s), shared_element(batch, s), element(batch, s, column));
      });
      position = end;
    }
    if (chunk.has_tail)
      each_tile([&](auto width, int64_t column, int64_t slot) {
        constexpr int W = decltype(width)::value;
        keep<W>(&tails[size_t(first_slot + slot)], take<W>(segments, batch, column, position, chunk.end));
      });
  }

  // The last worker of a segment that spans several puts its parts together.
  void join(int64_t batch, int64_t worker) {
    Segments segments(index, batch);
    SegmentChunk chunk(segments, worker, segment_items);
    if (!chunk.has_head) return;
    int64_t first = segments.first_item(chunk.first) / segment_items;
    auto part = [&](const std::vector<Slot>& parts, int64_t w, int64_t slot) {
      return parts.data() + (batch * workers + w) * slots + slot;
    };
    each_tile([&](auto width, int64_t column, int64_t slot) {
      constexpr int W = decltype(width)::value;
      State<W> state;
      reducer.start(state);
      for (int64_t w = first; w < worker; ++w) reducer.merge(state, kept<W>(part(tails, w, slot)));
      reducer.merge(state, kept<W>(part(heads, worker, slot)));
      reducer.finish(state, segments.rows(chunk.first), shared_element(batch, chunk.first),
                     element(batch, chunk.first, column));
    });
  }

  void run(const Executor& executor) {
    int64_t cost = std::min(segment_items, index.shape.entries + index.shape.segments) * index.shape.columns;
    parallel_for(executor, index.shape.batches * workers, cost,
                 [&](int64_t task) { reduce(task / workers, task % workers); });
    if (workers == 1) return;
    for (int64_t batch = 0; batch < index.shape.batches; ++batch)
      for (int64_t worker = 0; worker < workers; ++worker) join(batch, worker);
  }
};

}  // namespace internal

// The number of neighboring columns that are read together, at most.
template <class T>
inline constexpr int segment_columns = 64;

template <class Reducer>
Status reduce_segments(const Executor& executor, const Reducer& reducer, const SegmentIndex& index,
                       const typename Reducer::Element* x) {
  const SegmentShape& shape = index.shape;
  if (shape.batches * shape.segments * shape.columns == 0) return {};
  if (index.ids) {
    internal::OrderedIds ordered(executor, index);
    return reduce_segments(executor, reducer, ordered.index, x);
  }
  if (index.length) {
    std::vector<uint32_t> offsets;
    offsets.reserve(size_t(shape.batches / shape.sharing * (shape.segments + 1)));
    for (int64_t batch = 0; batch < shape.batches / shape.sharing; ++batch)
      for (int64_t s = 0; s <= shape.segments; ++s) offsets.push_back(uint32_t(s) * index.length);
    SegmentIndex with_offsets = index;
    with_offsets.offsets = offsets.data(), with_offsets.length = 0;
    return reduce_segments(executor, reducer, with_offsets, x);
  }
  int64_t workers = ceil_div(shape.entries + shape.segments, segment_items);
  internal::SegmentReduction<Reducer>(reducer, index, x, workers).run(executor);
  return {};
}

// Rows are written in the order of memory: new memory comes in pages, which are in the cache only when they come. For
// that the index is turned around first, into each row's segment.
template <class Broadcaster>
Status broadcast_segments(const Executor& executor, const Broadcaster& broadcaster, const SegmentIndex& index,
                          typename Broadcaster::Element* dx) {
  using Element = typename Broadcaster::Element;
  constexpr int V = 64 / sizeof(Element);
  const SegmentShape& shape = index.shape;
  int64_t rows = shape.rows, columns = shape.columns;
  if (shape.batches * rows * columns == 0) return {};
  if (shape.segments == 0) return std::fill_n(dx, shape.batches * rows * columns, Element{}), Status{};
  int64_t workers = ceil_div(rows + shape.segments, segment_items), id_batches = shape.batches / shape.sharing;
  std::vector<uint32_t> segment_of(size_t(id_batches * rows), no_row);
  int64_t ids = index.ids ? id_batches * rows : 0;
  parallel_for(executor, ceil_div(ids, segment_items), segment_items, [&](int64_t task) {
    for (int64_t i = task * segment_items; i < std::min(ids, (task + 1) * segment_items); ++i)
      if (int64_t segment = index.ids[i]; segment >= 0 && segment < shape.segments)
        segment_of[size_t(i)] = uint32_t(segment);
  });
  parallel_for(executor, index.ids ? 0 : id_batches * workers, segment_items, [&](int64_t task) {
    int64_t batch = task / workers;
    Segments segments(index, batch * shape.sharing);
    SegmentChunk chunk(segments, task % workers, segment_items);
    int64_t position = chunk.begin;
    for (int64_t segment = chunk.first; position < chunk.end && segment < segments.count; ++segment)
      for (int64_t end = std::min(segments.end(segment), chunk.end); position < end; ++position)
        segment_of[size_t(batch * rows + segments.row(position))] = uint32_t(segment);
  });
  int64_t ranges = ceil_div(rows, segment_items);
  parallel_for(executor, shape.batches * ranges, segment_items * columns, [&](int64_t task) {
    int64_t batch = task / ranges, first = task % ranges * segment_items;
    int64_t shared = shape.ids_batch(batch) * shape.segments;
    for (int64_t row = first; row < std::min(rows, first + segment_items); ++row) {
      int64_t segment = segment_of[size_t(shape.ids_batch(batch) * rows + row)];
      int64_t x_element = (batch * rows + row) * columns, element = (batch * shape.segments + segment) * columns;
      if (segment == no_row) {
        std::fill_n(dx + x_element, columns, Element{});
        continue;
      }
      internal::each_tile<V, true>(columns, [&](auto width, int64_t column, int64_t) {
        constexpr int W = decltype(width)::value;
        auto part = broadcaster.template part<W>(shared + segment, element + column);
        store<W>(dx + x_element + column, broadcaster.template row<W>(part, uint32_t(row), x_element + column));
      });
    }
  });
  return {};
}

// A reduction, and what it gives to the rows: results of segments and `out`, shaped as x. `rows` is the index that the
// broadcast has, which may be ids.
template <class Functor>
Status reduce_and_broadcast_segments(const Executor& executor, const Functor& functor, const SegmentIndex& index,
                                     const SegmentIndex& rows, const typename Functor::Element* x,
                                     typename Functor::Element* out) {
  Status status = reduce_segments(executor, functor.reducer, index, x);
  return status.ok() ? broadcast_segments(executor, functor.broadcaster, rows, out) : status;
}

}  // namespace baracuda
