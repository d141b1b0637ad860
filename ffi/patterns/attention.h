// The attention pattern: queries over lists of blocks of keys, here one query of each head over the pages that a
// sequence's table names. Keys are read in chunks of fixed size; the states of a sequence's chunks are merged in order,
// by a second pass. So the bits of a sequence depend on how many keys its table has room for, and on no other sequence.
#pragma once

#include <algorithm>

#include "../kernels/attention.h"
#include "../kernels/float8.h"
#include "executor.h"

namespace baracuda {

struct DecodeShape {
  int64_t batches, sequences, heads, kv_heads, pages, page_size, table, d, values;

  static constexpr int64_t most_chunks = 128;

  BARACUDA_HD int64_t capacity() const { return table * page_size; }
  // Queries that share a head of keys, which are neighbors.
  BARACUDA_HD int64_t group() const { return heads / kv_heads; }
  BARACUDA_HD int64_t all_sequences() const { return batches * sequences; }
};

struct KeyRange {
  int64_t begin, end;
};

// q [batches, sequences, heads, d]; k [batches, pages, page_size, kv_heads, d] and v alike with `values` columns;
// page_table [batches, sequences, table], lengths [batches, sequences], slopes [batches, heads]; y [batches, sequences,
// heads, values], lse [batches, sequences, heads].
template <class Stored, class Wide>
struct Decode {
  DecodeShape shape;
  AttentionScore<Wide> score;
  int64_t left;  // how many keys before its own a query sees; negative for all
  const Wide* q;
  const Stored *k, *v;
  const int32_t *page_table, *lengths;
  const Wide* slopes;
  Wide *y, *lse;

  // Chunks of 8 and 16 bits have the same bytes.
  static constexpr int64_t chunk_unit = sizeof(Stored) == 1 ? 1024 : 512;

  // The number of keys of a chunk, and of chunks of a sequence.
  BARACUDA_HD int64_t chunk() const {
    constexpr int64_t most = chunk_unit * DecodeShape::most_chunks;
    int64_t units = (shape.capacity() + most - 1) / most;
    return chunk_unit * (units > 1 ? units : 1);
  }
  BARACUDA_HD int64_t chunks() const { return (shape.capacity() + chunk() - 1) / chunk(); }
  // The position of the query is that of its sequence's last key.
  BARACUDA_HD int64_t length(int64_t sequence) const {
    int64_t length = lengths[sequence], most = shape.pages * shape.page_size > 0 ? shape.capacity() : 0;
    return length < 0 ? 0 : length < most ? length : most;
  }
  // The keys that a query sees, if their pages exist.
  BARACUDA_HD KeyRange seen(int64_t sequence) const {
    int64_t end = length(sequence), begin = left < 0 ? 0 : end - 1 - left;
    return {begin > 0 ? begin : 0, end};
  }
  BARACUDA_HD KeyRange in_chunk(KeyRange seen, int64_t number) const {
    int64_t begin = number * chunk(), end = begin + chunk();
    return {seen.begin > begin ? seen.begin : begin, seen.end < end ? seen.end : end};
  }
  // The row of a key among those of its batch's pages, or -1.
  BARACUDA_HD int32_t row(int64_t sequence, int64_t key) const {
    uint32_t size = uint32_t(shape.page_size), number = uint32_t(key) / size;
    int32_t page = page_table[sequence * shape.table + number];
    bool exists = page >= 0 && page < shape.pages;
    return exists ? int32_t(page * int32_t(size) + int32_t(uint32_t(key) - number * size)) : -1;
  }
  // Where a row of keys or values of so many columns begins.
  BARACUDA_HD int64_t offset(int64_t sequence, int32_t row, int64_t head, int64_t columns) const {
    int64_t batch = shape.batches == 1 ? 0 : sequence / shape.sequences;
    return ((batch * shape.pages * shape.page_size + row) * shape.kv_heads + head) * columns;
  }
  BARACUDA_HD Wide slope(int64_t sequence, int64_t head) const {
    return slopes[(shape.batches == 1 ? 0 : sequence / shape.sequences) * shape.heads + head];
  }
};

}  // namespace baracuda
