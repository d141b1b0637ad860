// The segment pattern: rows in the order of their segments, cut into equal chunks of work. A reduction reads them, a
// spread writes them.
//
// The index of a batch is CSR: segment s holds the rows perm[offsets[s]] ... perm[offsets[s + 1] - 1], in ascending
// order (the rows themselves where perm is null, for sorted ids). Work is a list of items: each row is one, and the end
// of each segment is one, after its rows (the "merge path" of Merrill and Garland, Merge-based parallel sparse
// matrix-vector multiplication, 2016). Worker w takes items [w * items, (w + 1) * items), so neither one huge segment
// nor a million empty ones unbalances it. A segment that spans workers leaves one partial state with each worker but
// the last, which puts them together, in row order. What is computed depends on the shapes and the ids alone, never on
// timing.
#pragma once

#include "../kernels/segment.h"
#include "executor.h"

namespace baracuda {

// A segment has the entries perm[offsets[s]] ... of the index. An entry is a row of x; or, where there are `sources`,
// it names a row that any number of entries may name, and is skipped where there is no such row. Of few entries, ids
// may come instead of an index: then the driver orders them. Segments of one length need no index.
struct SegmentIndex {
  SegmentShape shape;
  const uint32_t* perm;     // [batches of ids, entries], or null
  const uint32_t* offsets;  // [batches of ids, segments + 1]
  const uint32_t* sources;  // [batches of ids, entries] in the order of the segments, of the entries with ids; or null
  uint32_t source_rows;     // sources that are not below name no row: negative ones are the largest without a sign
  const int32_t* ids;       // [batches of ids, entries], or null
  uint32_t length;          // of all segments, whose entries follow each other; 0 where there are ids or offsets
  uint32_t repeats;         // with ids and no sources: how many neighboring entries name a row, or 0

  BARACUDA_HD bool has_sources() const { return sources || repeats; }
  // The row that an entry names, given ids.
  BARACUDA_HD uint32_t source(int64_t ids_batch, uint32_t entry) const {
    return sources ? sources[ids_batch * shape.entries + entry] : entry / repeats;
  }
};

// One batch's part of the index.
struct Segments {
  const uint32_t* perm;
  const uint32_t* offsets;
  const uint32_t* sources;
  uint32_t source_rows;
  int64_t count;
  int64_t first_row, last_row;  // positions of the first row that is in any segment, and of the one after the last

  BARACUDA_HD Segments(const SegmentIndex& index, int64_t batch) {
    int64_t ids = index.shape.ids_batch(batch);
    count = index.shape.segments;
    perm = index.perm ? index.perm + ids * index.shape.entries : nullptr;
    sources = index.sources ? index.sources + ids * index.shape.entries : nullptr;
    source_rows = index.source_rows;
    offsets = index.offsets + ids * (count + 1);
    first_row = offsets[0], last_row = offsets[count];
  }
  BARACUDA_HD int64_t begin(int64_t s) const { return offsets[s]; }
  BARACUDA_HD int64_t end(int64_t s) const { return offsets[s + 1]; }
  BARACUDA_HD uint32_t length(int64_t s) const { return end(s) > begin(s) ? uint32_t(end(s) - begin(s)) : 0; }
  BARACUDA_HD SegmentRows rows(int64_t s) const { return {perm, sources, source_rows, offsets[s], offsets[s + 1]}; }
  BARACUDA_HD uint32_t row(int64_t position) const { return perm ? perm[position] : uint32_t(position); }
  // The row of x that an entry names, given the entry's number.
  BARACUDA_HD uint32_t source(int64_t position, uint32_t number) const { return sources ? sources[position] : number; }
  // The item that is the first row of a segment, or its end where it has no row.
  BARACUDA_HD int64_t first_item(int64_t s) const {
    int64_t item = begin(s) - first_row + s;
    return item > 0 ? item : 0;  // below zero only where ids are said to be sorted and are not
  }
  BARACUDA_HD int64_t items() const { return last_row - first_row + count; }

  // The rows of no segment come before the first segment's or after the last one's.
  BARACUDA_HD int64_t dropped(int64_t rows) const { return first_row + rows - last_row; }
  BARACUDA_HD uint32_t dropped_row(int64_t i) const { return row(i < first_row ? i : i - first_row + last_row); }

  // How many segments end before an item; at least `low`, at most `high`.
  BARACUDA_HD int64_t ended_before(int64_t item, int64_t low, int64_t high) const {
    high = high < count ? high : count;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (end(middle) - first_row + middle < item)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

// A worker's chunk: it ends the segments [first, last), and may begin segment `last`.
struct SegmentChunk {
  int64_t first, last;
  int64_t begin, end;  // positions of rows
  bool has_head;       // the first segment began with an earlier worker
  bool has_tail;       // the last segment's rows so far are a partial state

  BARACUDA_HD SegmentChunk(const Segments& segments, int64_t worker, int64_t items)
      : SegmentChunk(segments, at_most(worker * items, segments), at_most((worker + 1) * items, segments), 0,
                     segments.count) {}

  // Items [from, to), before which at least `low` segments end, and at most `high`.
  BARACUDA_HD SegmentChunk(const Segments& segments, int64_t from, int64_t to, int64_t low, int64_t high) {
    first = segments.ended_before(from, low, from < high ? from : high);
    int64_t most = first + to - from;
    last = segments.ended_before(to, first, most < high ? most : high);
    begin = segments.first_row + from - first, end = segments.first_row + to - last;
    // Only ids that are said to be sorted and are not can pass the last row: wrong results, but no wrong address.
    end = end < segments.last_row ? end : segments.last_row;
    has_head = first < last && begin > segments.begin(first);
    has_tail = begin < end && (first == last || end > segments.begin(last));
  }

 private:
  static BARACUDA_HD int64_t at_most(int64_t item, const Segments& segments) {
    int64_t total = segments.items();
    return item < total ? item : total;
  }
};

}  // namespace baracuda
