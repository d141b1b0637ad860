// The varlen pattern on CPU threads. A task has a tile of queries of a head, or of keys of a head of keys, in wide
// numbers, and goes through tiles of the others. Tiles are filled up with zeros: all products are of whole blocks.
#pragma once

#include <vector>

#include "executor.h"
#include "varlen.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t varlen_tile = 64, product_rows = 4, product_columns = 16;

inline int64_t padded_columns(int64_t n) { return ceil_div(n, product_columns) * product_columns; }

// out [m, n] += a [m, k] b [k, n], with m a multiple of product_rows and n of product_columns. Element (i, c) of a is
// a[i * row + c * column].
template <class Wide>
void add_product(int64_t m, int64_t n, int64_t k, const Wide* a, int64_t row, int64_t column, const Wide* b,
                 Wide* out) {
  for (int64_t i = 0; i < m; i += product_rows)
    for (int64_t j = 0; j < n; j += product_columns) {
      Wide sums[product_rows][product_columns];
      for (int r = 0; r < product_rows; ++r)
        for (int c = 0; c < product_columns; ++c) sums[r][c] = out[(i + r) * n + j + c];
      for (int64_t x = 0; x < k; ++x)
        for (int r = 0; r < product_rows; ++r) {
          Wide factor = a[(i + r) * row + x * column];
          for (int c = 0; c < product_columns; ++c) sums[r][c] = std::fma(factor, b[x * n + j + c], sums[r][c]);
        }
      for (int r = 0; r < product_rows; ++r)
        for (int c = 0; c < product_columns; ++c) out[(i + r) * n + j + c] = sums[r][c];
    }
}

// A tile of rows in wide numbers, [varlen_tile, width], and turned over, [width, varlen_tile].
template <class Wide>
struct WideTile {
  int64_t width;
  std::vector<Wide> rows, columns;

  explicit WideTile(int64_t count)
      : width(padded_columns(count)), rows(size_t(width * varlen_tile)), columns(rows.size()) {}
  template <class T>
  void read(const T* from, int64_t stride, int64_t count, int64_t length) {
    std::fill(rows.begin(), rows.end(), Wide(0));
    for (int64_t i = 0; i < length; ++i)
      for (int64_t c = 0; c < count; ++c) rows[i * width + c] = Wide(from[i * stride + c]);
    for (int64_t c = 0; c < width; ++c)
      for (int64_t i = 0; i < varlen_tile; ++i) columns[c * varlen_tile + i] = rows[i * width + c];
  }
  void clear() { std::fill(rows.begin(), rows.end(), Wide(0)); }
  template <class T>
  void write(T* to, int64_t stride, int64_t count, int64_t length) const {
    for (int64_t i = 0; i < length; ++i)
      for (int64_t c = 0; c < count; ++c) to[i * stride + c] = T(rows[i * width + c]);
  }
};

// Tiles of queries and keys of a head and, for the gradient, of dy and values: their products, and what is made of
// these.
template <class T>
struct VarlenTiles {
  using Wide = Accumulator<T>;
  const Varlen<T>& work;
  const VarlenShape& shape;
  int64_t batch, head;
  VarlenSequence of{};
  KeyRange queries{}, keys{};
  WideTile<Wide> q, k, v, dy;
  std::vector<Wide> products, weights, slopes;  // [queries, keys]

  VarlenTiles(const Varlen<T>& work, int64_t batch, int64_t head)
      : work(work),
        shape(work.shape),
        batch(batch),
        head(head),
        q(shape.d),
        k(shape.d),
        v(shape.values),
        dy(shape.values),
        products(varlen_tile * varlen_tile),
        weights(products.size()),
        slopes(products.size()) {}

  int64_t first_query_row() const { return work.query_row(batch, of, queries.begin, head); }
  int64_t first_key_row() const { return work.key_row(batch, of, keys.begin, head / shape.group()); }
  void read_queries() {
    q.read(work.q + first_query_row() * shape.d, shape.heads * shape.d, shape.d, queries.end - queries.begin);
  }
  void read_dy(const T* from) {
    dy.read(from + first_query_row() * shape.values, shape.heads * shape.values, shape.values,
            queries.end - queries.begin);
  }
  void read_keys() {
    int64_t count = keys.end - keys.begin, row = first_key_row();
    k.read(work.k + row * shape.d, shape.kv_heads * shape.d, shape.d, count);
    v.read(work.v + row * shape.values, shape.kv_heads * shape.values, shape.values, count);
  }
  void multiply() {
    std::fill(products.begin(), products.end(), Wide(0));
    add_product(varlen_tile, varlen_tile, q.width, q.rows.data(), q.width, int64_t(1), k.columns.data(),
                products.data());
  }
  // The score of query i and key j of the tiles, in units of log(2).
  Wide score(int64_t i, int64_t j) const {
    if (!work.sees(of, queries.begin + i, keys.begin + j)) return SoftmaxState<Wide>::nothing;
    return work.score(products[i * varlen_tile + j], work.slope(batch, head), distance(i, j));
  }
  Wide distance(int64_t i, int64_t j) const {  // 0 for keys after the last
    return keys.begin + j < of.keys ? Wide(of.position(keys.begin + j) - (queries.begin + i + of.shift)) : Wide(0);
  }
  // The weights of all pairs, and the slopes of the result in their scores.
  void differentiate(const VarlenGradient<T>& gradient) {
    multiply();
    std::fill(slopes.begin(), slopes.end(), Wide(0));
    add_product(varlen_tile, varlen_tile, dy.width, dy.rows.data(), dy.width, int64_t(1), v.columns.data(),
                slopes.data());
    int64_t count = queries.end - queries.begin, row = first_query_row();
    for (int64_t i = 0; i < varlen_tile; ++i)
      for (int64_t j = 0; j < varlen_tile; ++j) {
        int64_t at = i * varlen_tile + j;
        bool is_seen = i < count && work.sees(of, queries.begin + i, keys.begin + j);
        int64_t of_row = row + i * shape.heads;
        weights[at] = is_seen ? power_of_two(score(i, j) - gradient.log2_sum(of_row)) : Wide(0);
        slopes[at] = is_seen ? weights[at] * (slopes[at] - gradient.dot[of_row]) : Wide(0);
      }
  }
  // Those in the products of queries and keys.
  void through_score() {
    for (size_t at = 0; at < slopes.size(); ++at) slopes[at] *= work.score.slope(products[at], Wide(work.scale));
  }
};

template <class T>
void varlen_of_queries(const Varlen<T>& work, VarlenTiles<T>& tiles, T* y, Accumulator<T>* lse) {
  using Wide = Accumulator<T>;
  using State = SoftmaxState<Wide>;
  const VarlenShape& shape = work.shape;
  tiles.read_queries();
  std::vector<State> states(varlen_tile, State::empty());
  WideTile<Wide> sums(shape.values);
  KeyRange seen = work.keys_of(tiles.of, tiles.queries);
  for (int64_t key = seen.begin / varlen_tile * varlen_tile; key < seen.end; key += varlen_tile) {
    tiles.keys = {key, std::min(key + varlen_tile, tiles.of.keys)};
    tiles.read_keys();
    tiles.multiply();
    for (int64_t i = 0; i < varlen_tile; ++i) {
      Wide *scores = tiles.products.data() + i * varlen_tile, *weights = tiles.weights.data() + i * varlen_tile;
      Wide largest = states[i].largest;
      for (int64_t j = 0; j < varlen_tile; ++j) scores[j] = tiles.score(i, j);
      for (int64_t j = 0; j < varlen_tile; ++j) largest = State::larger(largest, scores[j]);
      Wide kept = State::weight(states[i].largest, largest), total = states[i].total * kept;
      for (int64_t j = 0; j < varlen_tile; ++j) weights[j] = State::weight(scores[j], largest);
      for (int64_t j = 0; j < varlen_tile; ++j) total += weights[j];
      states[i] = {largest, total};
      for (int64_t c = 0; c < sums.width; ++c) sums.rows[i * sums.width + c] *= kept;
    }
    add_product(varlen_tile, sums.width, varlen_tile, tiles.weights.data(), varlen_tile, int64_t(1),
                tiles.v.rows.data(), sums.rows.data());
  }
  int64_t count = tiles.queries.end - tiles.queries.begin, row = tiles.first_query_row();
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < sums.width; ++c) {
      Wide& sum = sums.rows[i * sums.width + c];
      sum = states[i].is_empty() ? Wide(0) : sum / states[i].total;
    }
    lse[row + i * shape.heads] = states[i].log_sum_exp();
  }
  sums.write(y + row * shape.values, shape.heads * shape.values, shape.values, count);
}

template <class T>
void varlen_gradient_of_queries(const Varlen<T>& work, const VarlenGradient<T>& gradient, VarlenTiles<T>& tiles) {
  using Wide = Accumulator<T>;
  const VarlenShape& shape = work.shape;
  tiles.read_queries();
  tiles.read_dy(gradient.dy);
  WideTile<Wide> dq(shape.d);
  std::vector<Wide> of_slope(varlen_tile, Wide(0));
  KeyRange seen = work.keys_of(tiles.of, tiles.queries);
  for (int64_t key = seen.begin / varlen_tile * varlen_tile; key < seen.end; key += varlen_tile) {
    tiles.keys = {key, std::min(key + varlen_tile, tiles.of.keys)};
    tiles.read_keys();
    tiles.differentiate(gradient);
    for (int64_t i = 0; i < varlen_tile; ++i)
      for (int64_t j = 0; j < varlen_tile; ++j) of_slope[i] += tiles.slopes[i * varlen_tile + j] * tiles.distance(i, j);
    tiles.through_score();
    add_product(varlen_tile, dq.width, varlen_tile, tiles.slopes.data(), varlen_tile, int64_t(1), tiles.k.rows.data(),
                dq.rows.data());
  }
  int64_t count = tiles.queries.end - tiles.queries.begin, row = tiles.first_query_row();
  for (int64_t i = 0; i < count; ++i) gradient.dslope[row + i * shape.heads] = of_slope[i];
  dq.write(gradient.dq + row * shape.d, shape.heads * shape.d, shape.d, count);
}

template <class T>
void varlen_gradient_of_keys(const Varlen<T>& work, const VarlenGradient<T>& gradient, VarlenTiles<T>& tiles,
                             int64_t kv_head) {
  using Wide = Accumulator<T>;
  const VarlenShape& shape = work.shape;
  WideTile<Wide> dk(shape.d), dv(shape.values);
  int64_t count = tiles.keys.end - tiles.keys.begin;
  KeyRange keys{tiles.keys.begin, std::min(tiles.keys.end, tiles.of.keys)}, seeing = work.queries_of(tiles.of, keys);
  int64_t row = work.key_row(tiles.batch, tiles.of, keys.begin, kv_head);
  if (seeing.begin < seeing.end) {
    tiles.head = kv_head * shape.group();
    tiles.keys = keys;
    tiles.read_keys();
  }
  for (int64_t g = 0; g < shape.group(); ++g) {
    tiles.head = kv_head * shape.group() + g;
    for (int64_t query = seeing.begin / varlen_tile * varlen_tile; query < seeing.end; query += varlen_tile) {
      tiles.queries = {query, std::min(query + varlen_tile, tiles.of.queries)};
      tiles.read_queries();
      tiles.read_dy(gradient.dy);
      tiles.differentiate(gradient);
      add_product(varlen_tile, dv.width, varlen_tile, tiles.weights.data(), int64_t(1), varlen_tile,
                  tiles.dy.rows.data(), dv.rows.data());
      tiles.through_score();
      add_product(varlen_tile, dk.width, varlen_tile, tiles.slopes.data(), int64_t(1), varlen_tile, tiles.q.rows.data(),
                  dk.rows.data());
    }
  }
  dk.write(gradient.dk + row * shape.d, shape.kv_heads * shape.d, shape.d, count);
  dv.write(gradient.dv + row * shape.values, shape.kv_heads * shape.values, shape.values, count);
}

}  // namespace internal

template <class T>
Status varlen(const Executor& executor, const Varlen<T>& work, T* y, Accumulator<T>* lse) {
  const VarlenShape& shape = work.shape;
  int64_t tiles = RowTiles::count(shape.sequences, shape.queries, internal::varlen_tile);
  int64_t cost = internal::varlen_tile * std::min(shape.keys, shape.most_keys) * (shape.d + shape.values);
  parallel_for(executor, shape.batches * shape.heads * tiles, cost, [&](int64_t task) {
    int64_t batch = task / tiles / shape.heads;
    RowTiles::Tile tile = work.query_tiles(batch, internal::varlen_tile)(task % tiles);
    if (tile.begin >= tile.end) return;
    internal::VarlenTiles<T> in(work, batch, task / tiles % shape.heads);
    in.of = work.sequence(batch, tile.sequence), in.queries = {tile.begin, tile.end};
    internal::varlen_of_queries(work, in, y, lse);
  });
  return {};
}

template <class T>
Status varlen_backward(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  const VarlenShape& shape = work.shape;
  parallel_for(executor, shape.batches * shape.queries * shape.heads, shape.values, [&](int64_t row) {
    Accumulator<T> sum = 0;
    for (int64_t c = 0; c < shape.values; ++c) sum += gradient.product(row * shape.values + c);
    gradient.dot[row] = sum - gradient.dlse[row];
  });
  int64_t tiles = RowTiles::count(shape.sequences, shape.queries, internal::varlen_tile);
  int64_t cost = 3 * internal::varlen_tile * (shape.d + shape.values);
  parallel_for(executor, shape.batches * shape.heads * tiles, cost * std::min(shape.keys, shape.most_keys),
               [&](int64_t task) {
                 int64_t batch = task / tiles / shape.heads;
                 RowTiles::Tile tile = work.query_tiles(batch, internal::varlen_tile)(task % tiles);
                 if (tile.begin >= tile.end) return;
                 internal::VarlenTiles<T> in(work, batch, task / tiles % shape.heads);
                 in.of = work.sequence(batch, tile.sequence), in.queries = {tile.begin, tile.end};
                 internal::varlen_gradient_of_queries(work, gradient, in);
               });
  tiles = RowTiles::count(shape.sequences, shape.keys, internal::varlen_tile);
  cost *= shape.group() * std::min(shape.queries, shape.most_queries);
  parallel_for(executor, shape.batches * shape.kv_heads * tiles, cost, [&](int64_t task) {
    int64_t batch = task / tiles / shape.kv_heads;
    RowTiles::Tile tile = work.key_tiles(batch, internal::varlen_tile)(task % tiles);
    if (tile.begin >= tile.end) return;
    internal::VarlenTiles<T> in(work, batch, 0);
    in.of = work.sequence(batch, tile.sequence), in.keys = {tile.begin, tile.end};
    internal::varlen_gradient_of_keys(work, gradient, in, task / tiles % shape.kv_heads);
  });
  return {};
}

}  // namespace baracuda
