// The varlen pattern: attention of sequences that follow each other in one array. Rows that are no sequence's, before
// the first and after the last, are two more sequences that see no key. So every row is of one.
#pragma once

#include "../kernels/attention.h"
#include "attention.h"

namespace baracuda {

struct VarlenShape {
  int64_t batches, queries, keys, sequences, heads, kv_heads, d, values;
  int64_t most_queries, most_keys;  // of a sequence; later ones are left out

  BARACUDA_HD int64_t group() const { return heads / kv_heads; }
};

// Rows of one array in sequences, cut into tiles of `size` rows. Tile t of the array belongs to the last sequence s
// with begin(s) / size + s <= t: these numbers leave each sequence as many tiles as it may need, without counting them.
struct RowTiles {
  const int32_t* starts;  // ascending, [sequences + 1], of a batch
  int64_t sequences, rows, size;

  struct Tile {
    int64_t sequence, begin, end;  // rows of the sequence; none where begin >= end
  };

  static BARACUDA_HD int64_t count(int64_t sequences, int64_t rows, int64_t size) {
    return rows / size + sequences + 2;
  }
  BARACUDA_HD int64_t begin(int64_t s) const {
    if (s == 0) return 0;
    if (s > sequences + 1) return rows;
    int64_t start = starts[s - 1];
    return start < 0 ? 0 : start < rows ? start : rows;
  }
  BARACUDA_HD int64_t first_tile(int64_t s) const { return begin(s) / size + s; }
  BARACUDA_HD Tile operator()(int64_t t) const {
    int64_t low = 0, high = sequences + 1;
    while (low < high) {
      int64_t middle = (low + high + 1) / 2;
      if (first_tile(middle) <= t) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return tile_of(low, t);
  }
  // Tile t, which belongs to the sequence s.
  BARACUDA_HD Tile tile_of(int64_t s, int64_t t) const {
    int64_t count = begin(s + 1) - begin(s), first = (t - first_tile(s)) * size;
    return {s, first, first + size < count ? first + size : count};
  }
};

// A sequence: where its queries and keys begin, how many there are, and at which position its first query is. Key j is
// at the position j, or at positions[j].
struct VarlenSequence {
  int64_t first_query, queries, first_key, keys, shift;
  const int32_t* positions = nullptr;

  static constexpr int32_t nowhere = std::numeric_limits<int32_t>::min();  // of a key that no query sees

  BARACUDA_HD int64_t position(int64_t key) const { return positions == nullptr ? key : positions[key]; }
  BARACUDA_HD bool is_somewhere(int64_t key) const { return positions == nullptr || positions[key] != nowhere; }
};

// q [batches, queries, heads, d]; k [batches, keys, kv_heads, d] and v alike with `values` columns; starts_q and
// starts_k [batches, sequences + 1]; slopes [batches, heads]; positions [batches, keys], or null.
template <class T>
struct Varlen {
  using Wide = Accumulator<T>;
  VarlenShape shape;
  AttentionScore<Wide> score;
  double scale;
  int64_t left, right;  // how many keys before and after its own a query sees; negative for all
  bool bottom_right, biased;
  const T *q, *k, *v;
  const int32_t *starts_q, *starts_k;
  const Wide* slopes;
  const int32_t* positions = nullptr;

  BARACUDA_HD RowTiles query_tiles(int64_t batch, int64_t size) const {
    return {starts_q + batch * (shape.sequences + 1), shape.sequences, shape.queries, size};
  }
  BARACUDA_HD RowTiles key_tiles(int64_t batch, int64_t size) const {
    return {starts_k + batch * (shape.sequences + 1), shape.sequences, shape.keys, size};
  }
  BARACUDA_HD VarlenSequence sequence(int64_t batch, int64_t s) const {
    RowTiles of_queries = query_tiles(batch, 1), of_keys = key_tiles(batch, 1);
    int64_t q = of_queries.begin(s), k = of_keys.begin(s);
    bool is_one = s > 0 && s <= shape.sequences;
    int64_t queries = is_one ? of_queries.begin(s + 1) - q : 0, keys = is_one ? of_keys.begin(s + 1) - k : 0;
    queries = queries < 0 ? 0 : queries < shape.most_queries ? queries : shape.most_queries;
    keys = keys < 0 ? 0 : keys < shape.most_keys ? keys : shape.most_keys;
    return {q,
            queries,
            k,
            keys,
            bottom_right ? keys - queries : 0,
            positions ? positions + batch * shape.keys + k : nullptr};
  }
  // The keys that any of some queries sees, and the queries that see any of some keys; those that may, where positions
  // are in any order.
  BARACUDA_HD KeyRange keys_of(const VarlenSequence& s, KeyRange queries) const {
    int64_t end = queries.end < s.queries ? queries.end : s.queries;
    if (queries.begin >= end) return {0, 0};
    if (s.positions != nullptr) return {0, s.keys};
    return {left < 0 ? 0 : at_least_0(queries.begin + s.shift - left),
            right < 0 || end + s.shift + right > s.keys ? s.keys : end + s.shift + right};
  }
  BARACUDA_HD KeyRange queries_of(const VarlenSequence& s, KeyRange keys) const {
    int64_t end = keys.end < s.keys ? keys.end : s.keys;
    if (keys.begin >= end) return {0, 0};
    if (s.positions != nullptr) return {0, s.queries};
    return {right < 0 ? 0 : at_least_0(keys.begin - s.shift - right),
            left < 0 || end - s.shift + left > s.queries ? s.queries : end - s.shift + left};
  }
  BARACUDA_HD bool sees(const VarlenSequence& s, int64_t query, int64_t key) const {
    KeyRange keys = keys_of(s, {query, query + 1});
    if (key < keys.begin || key >= keys.end || s.positions == nullptr) return key >= keys.begin && key < keys.end;
    int64_t after = s.position(key) - (query + s.shift);
    return s.is_somewhere(key) && (left < 0 || -after <= left) && (right < 0 || after <= right);
  }
  // Whether all of some queries see all of some keys.
  BARACUDA_HD bool see_all(const VarlenSequence& s, KeyRange queries, KeyRange keys) const {
    return sees(s, queries.begin, keys.begin) && sees(s, queries.begin, keys.end - 1) &&
           sees(s, queries.end - 1, keys.begin) && sees(s, queries.end - 1, keys.end - 1);
  }
  BARACUDA_HD int64_t query_row(int64_t batch, const VarlenSequence& s, int64_t query, int64_t head) const {
    return (batch * shape.queries + s.first_query + query) * shape.heads + head;
  }
  BARACUDA_HD int64_t key_row(int64_t batch, const VarlenSequence& s, int64_t key, int64_t kv_head) const {
    return (batch * shape.keys + s.first_key + key) * shape.kv_heads + kv_head;
  }
  BARACUDA_HD Wide slope(int64_t batch, int64_t head) const { return slopes[batch * shape.heads + head]; }

 private:
  static BARACUDA_HD int64_t at_least_0(int64_t i) { return i < 0 ? 0 : i; }
};

// What the gradient reads besides, and what it writes: y and dy, [batches, queries, heads, values], and of [batches,
// queries, heads] lse, dlse and, written first, dot = sum(dy y) - dlse. The gradient of a slope is the sum over the
// rows of dslope.
template <class T>
struct VarlenGradient {
  using Wide = Accumulator<T>;
  const T *y, *dy;
  const Wide *lse, *dlse;
  T *dq, *dk, *dv;
  Wide *dslope, *dot;

  BARACUDA_HD Wide product(int64_t element) const { return Wide(dy[element]) * Wide(y[element]); }

  // In units of log(2); infinity for a query that sees no key, whose weights are 0 then.
  BARACUDA_HD Wide log2_sum(int64_t row) const {
    Wide value = lse[row];
    return value == SoftmaxState<Wide>::nothing ? -value : value * log2_e<Wide>;
  }
};

}  // namespace baracuda
