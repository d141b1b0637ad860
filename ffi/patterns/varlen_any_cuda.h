// The varlen pattern on a CUDA grid for all dtypes and sizes, without tensor cores. A block has a tile of rows and a
// slice of the columns that it sums, and computes the scores of all columns, a slice at a time.
#pragma once

#include "varlen.h"

namespace baracuda {
namespace internal {

inline constexpr int any_tile = 32, any_block = 128;

// Of the tile's pairs a thread has those of 4 rows and 2 columns, and of a slice of the result the same rows.
template <class T>
struct AnyTile {
  using Wide = Accumulator<T>;
  static constexpr int slice = sizeof(Wide) == 8 ? 32 : 64, own = slice / 16, rows = 4, pairs = 2;
  using Pairs = Wide[rows][pairs];
  using Sums = Wide[rows][own];

  struct Shared {
    Wide a[any_tile][slice + 1], b[any_tile][slice + 1], weights[any_tile][any_tile + 1],
        slopes[any_tile][any_tile + 1];
  };
  Shared& shared;

  static __device__ int row(int i) { return int(threadIdx.x) / 16 * rows + i; }
  static __device__ int pair(int j) { return int(threadIdx.x) % 16 + 16 * j; }
  static __device__ int column(int j) { return int(threadIdx.x) % 16 + 16 * j; }

  static __device__ void read(Wide (&to)[any_tile][slice + 1], const T* from, int64_t stride, int count, int64_t first,
                              int64_t columns) {
    for (int all = threadIdx.x; all < any_tile * slice; all += any_block) {
      int r = all / slice, c = all % slice;
      to[r][c] = r < count && first + c < columns ? Wide(from[r * stride + first + c]) : Wide(0);
    }
  }
  // The products of two tiles of rows of so many columns.
  __device__ void multiply(Pairs& s, const T* a, int64_t a_stride, int a_count, const T* b, int64_t b_stride,
                           int b_count, int64_t columns) const {
#pragma unroll
    for (auto& of_row : s)
#pragma unroll
      for (Wide& x : of_row) x = 0;
    for (int64_t first = 0; first < columns; first += slice) {
      __syncthreads();
      read(shared.a, a, a_stride, a_count, first, columns);
      read(shared.b, b, b_stride, b_count, first, columns);
      __syncthreads();
#pragma unroll 8
      for (int c = 0; c < slice; ++c)
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
          for (int j = 0; j < pairs; ++j) s[i][j] += shared.a[row(i)][c] * shared.b[pair(j)][c];
    }
  }
  // The weights times a slice of rows; turned over, the rows are those of the weights.
  template <bool turned>
  __device__ void add(Sums& sums, const Wide (&weights)[any_tile][any_tile + 1], const T* from, int64_t stride,
                      int count, int64_t first, int64_t columns) const {
    __syncthreads();
    read(shared.b, from, stride, count, first, columns);
    __syncthreads();
#pragma unroll 8
    for (int x = 0; x < any_tile; ++x)
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < own; ++j)
          sums[i][j] += (turned ? weights[x][row(i)] : weights[row(i)][x]) * shared.b[x][column(j)];
  }
  static __device__ void write(const Sums& sums, T* to, int64_t stride, int count, int64_t first, int64_t columns) {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < own; ++j)
        if (row(i) < count && first + column(j) < columns) to[row(i) * stride + first + column(j)] = T(sums[i][j]);
  }
  // Over the 16 threads that share rows.
  template <class Add>
  static __device__ Wide over_row(Wide x, const Add& add) {
#pragma unroll
    for (int step = 1; step < 16; step *= 2) x = add(x, __shfl_xor_sync(~0u, x, step));
    return x;
  }
  static __device__ Wide sum(Wide x) {
    return over_row(x, [](Wide a, Wide b) { return a + b; });
  }
};

struct AnyBlock {
  int64_t batch, head, first;  // the first column of the block's slice
  RowTiles::Tile tile;
  VarlenSequence of;
};

template <class T>
__device__ AnyBlock any_block_of(const Varlen<T>& work, int64_t tiles, bool of_keys) {
  int64_t heads = of_keys ? work.shape.kv_heads : work.shape.heads, all = int64_t(blockIdx.x);
  int64_t number = all % tiles, head = all / tiles % heads, batch = all / tiles / heads;
  RowTiles::Tile tile = (of_keys ? work.key_tiles(batch, any_tile) : work.query_tiles(batch, any_tile))(number);
  return {batch, head, int64_t(blockIdx.y) * AnyTile<T>::slice, tile, work.sequence(batch, tile.sequence)};
}

template <class T>
__global__ void __launch_bounds__(any_block) varlen_any(Varlen<T> work, int64_t tiles, T* y, Accumulator<T>* lse) {
  using Wide = Accumulator<T>;
  using Tile = AnyTile<T>;
  using State = SoftmaxState<Wide>;
  __shared__ typename Tile::Shared shared;
  Tile by{shared};
  const VarlenShape& shape = work.shape;
  AnyBlock block = any_block_of(work, tiles, false);
  if (block.tile.begin >= block.tile.end) return;
  int64_t kv_head = block.head / shape.group(), first_query = block.tile.begin;
  int64_t q_row = work.query_row(block.batch, block.of, first_query, block.head);
  int count = int(block.tile.end - first_query);
  KeyRange seen = work.keys_of(block.of, {first_query, block.tile.end});
  Wide slope = work.slope(block.batch, block.head);
  State states[Tile::rows];
  typename Tile::Sums sums{};
#pragma unroll
  for (State& state : states) state = State::empty();
  for (int64_t key = seen.begin / any_tile * any_tile; key < seen.end; key += any_tile) {
    int keys = int(min(block.of.keys - key, int64_t(any_tile)));
    int64_t k_row = work.key_row(block.batch, block.of, key, kv_head);
    typename Tile::Pairs s;
    by.multiply(s, work.q + q_row * shape.d, shape.heads * shape.d, count, work.k + k_row * shape.d,
                shape.kv_heads * shape.d, keys, shape.d);
#pragma unroll
    for (int i = 0; i < Tile::rows; ++i) {
      int64_t query = first_query + by.row(i);
      Wide top = states[i].largest;
#pragma unroll
      for (int j = 0; j < Tile::pairs; ++j) {
        int64_t at = key + by.pair(j);
        s[i][j] = work.sees(block.of, query, at)
                      ? work.score(s[i][j], slope, Wide(block.of.position(at) - (query + block.of.shift)))
                      : State::nothing;
        top = State::larger(top, s[i][j]);
      }
      top = Tile::over_row(top, [](Wide a, Wide b) { return State::larger(a, b); });
      Wide kept = State::weight(states[i].largest, top), sum = 0;
#pragma unroll
      for (int j = 0; j < Tile::pairs; ++j) {
        Wide weight = State::weight(s[i][j], top);
        shared.weights[by.row(i)][by.pair(j)] = weight;
        sum += weight;
      }
      states[i] = {top, states[i].total * kept + Tile::sum(sum)};
#pragma unroll
      for (Wide& x : sums[i]) x *= kept;
    }
    by.template add<false>(sums, shared.weights, work.v + k_row * shape.values, shape.kv_heads * shape.values, keys,
                           block.first, shape.values);
  }
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
#pragma unroll
    for (Wide& x : sums[i]) x = states[i].is_empty() ? Wide(0) : x / states[i].total;
    if (block.first == 0 && threadIdx.x % 16 == 0 && by.row(i) < count)
      lse[q_row + by.row(i) * shape.heads] = states[i].log_sum_exp();
  }
  Tile::write(sums, y + q_row * shape.values, shape.heads * shape.values, count, block.first, shape.values);
}

// The weights of a tile of queries and one of keys and their slopes in the products, in shared memory. The slopes in
// the scores themselves, times the distances, are added to of_slope.
template <class T>
__device__ void differentiate(AnyTile<T> by, const Varlen<T>& work, const VarlenGradient<T>& gradient,
                              const AnyBlock& block, int64_t head, int64_t query, int queries, int64_t key, int keys,
                              Accumulator<T> (&of_slope)[AnyTile<T>::rows]) {
  using Wide = Accumulator<T>;
  using Tile = AnyTile<T>;
  const VarlenShape& shape = work.shape;
  int64_t q_row = work.query_row(block.batch, block.of, query, head);
  int64_t k_row = work.key_row(block.batch, block.of, key, head / shape.group());
  typename Tile::Pairs s, ds;
  by.multiply(s, work.q + q_row * shape.d, shape.heads * shape.d, queries, work.k + k_row * shape.d,
              shape.kv_heads * shape.d, keys, shape.d);
  by.multiply(ds, gradient.dy + q_row * shape.values, shape.heads * shape.values, queries,
              work.v + k_row * shape.values, shape.kv_heads * shape.values, keys, shape.values);
  Wide slope = work.slope(block.batch, head);
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i)
#pragma unroll
    for (int j = 0; j < Tile::pairs; ++j) {
      int row = by.row(i), pair = by.pair(j);
      bool is_seen = row < queries && work.sees(block.of, query + row, key + pair);
      Wide weight = 0, in_score = 0, distance = 0;
      if (is_seen) {
        distance = Wide(block.of.position(key + pair) - (query + row + block.of.shift));
        int64_t at = q_row + row * shape.heads;
        weight = power_of_two(work.score(s[i][j], slope, distance) - gradient.log2_sum(at));
        in_score = weight * (ds[i][j] - gradient.dot[at]);
      }
      of_slope[i] += in_score * distance;
      by.shared.weights[row][pair] = weight;
      by.shared.slopes[row][pair] = in_score * work.score.slope(s[i][j], Wide(work.scale));
    }
}

template <class T>
__global__ void __launch_bounds__(any_block, 3)
    varlen_any_queries(Varlen<T> work, int64_t tiles, VarlenGradient<T> gradient) {
  using Wide = Accumulator<T>;
  using Tile = AnyTile<T>;
  __shared__ typename Tile::Shared shared;
  Tile by{shared};
  const VarlenShape& shape = work.shape;
  AnyBlock block = any_block_of(work, tiles, false);
  if (block.tile.begin >= block.tile.end) return;
  int64_t kv_head = block.head / shape.group(), query = block.tile.begin;
  int count = int(block.tile.end - query);
  KeyRange seen = work.keys_of(block.of, {query, block.tile.end});
  typename Tile::Sums sums{};
  Wide of_slope[Tile::rows] = {};
  for (int64_t key = seen.begin / any_tile * any_tile; key < seen.end; key += any_tile) {
    int keys = int(min(block.of.keys - key, int64_t(any_tile)));
    differentiate(by, work, gradient, block, block.head, query, count, key, keys, of_slope);
    int64_t k_row = work.key_row(block.batch, block.of, key, kv_head);
    by.template add<false>(sums, shared.slopes, work.k + k_row * shape.d, shape.kv_heads * shape.d, keys, block.first,
                           shape.d);
  }
  int64_t q_row = work.query_row(block.batch, block.of, query, block.head);
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
    Wide sum = Tile::sum(of_slope[i]);
    if (block.first == 0 && threadIdx.x % 16 == 0 && by.row(i) < count)
      gradient.dslope[q_row + by.row(i) * shape.heads] = sum;
  }
  Tile::write(sums, gradient.dq + q_row * shape.d, shape.heads * shape.d, count, block.first, shape.d);
}

template <class T>
__global__ void __launch_bounds__(any_block)
    varlen_any_keys(Varlen<T> work, int64_t tiles, VarlenGradient<T> gradient) {
  using Tile = AnyTile<T>;
  __shared__ typename Tile::Shared shared;
  Tile by{shared};
  const VarlenShape& shape = work.shape;
  AnyBlock block = any_block_of(work, tiles, true);
  if (block.tile.begin >= block.tile.end) return;
  int64_t kv_head = block.head, key = block.tile.begin, end = min(block.tile.end, block.of.keys);
  KeyRange seeing = work.queries_of(block.of, {key, end});
  typename Tile::Sums dk{}, dv{};
  Accumulator<T> unused[Tile::rows] = {};
  for (int64_t head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); ++head)
    for (int64_t query = seeing.begin / any_tile * any_tile; query < seeing.end; query += any_tile) {
      int queries = int(min(block.of.queries - query, int64_t(any_tile)));
      differentiate(by, work, gradient, block, head, query, queries, key, int(end - key), unused);
      int64_t q_row = work.query_row(block.batch, block.of, query, head);
      by.template add<true>(dv, shared.weights, gradient.dy + q_row * shape.values, shape.heads * shape.values, queries,
                            block.first, shape.values);
      by.template add<true>(dk, shared.slopes, work.q + q_row * shape.d, shape.heads * shape.d, queries, block.first,
                            shape.d);
    }
  int count = int(block.tile.end - key);
  int64_t k_row = work.key_row(block.batch, block.of, key, kv_head);
  Tile::write(dk, gradient.dk + k_row * shape.d, shape.kv_heads * shape.d, count, block.first, shape.d);
  Tile::write(dv, gradient.dv + k_row * shape.values, shape.kv_heads * shape.values, count, block.first, shape.values);
}

// The grid of so many tiles of heads, and slices of so many columns.
template <class T>
Status any_grid(dim3& grid, int64_t blocks, int64_t columns) {
  int64_t slices = std::max(ceil_div(columns, AnyTile<T>::slice), int64_t(1));
  if (blocks > (int64_t(1) << 31) - 1 || slices > 65535) return {"there are more than 2^31 - 1 tiles, or 65535 slices"};
  grid = dim3(unsigned(blocks), unsigned(slices));
  return {};
}

template <class T>
Status varlen_of_any(const Executor& executor, const Varlen<T>& work, T* y, Accumulator<T>* lse) {
  const VarlenShape& shape = work.shape;
  int64_t tiles = RowTiles::count(shape.sequences, shape.queries, any_tile);
  dim3 grid;
  Status status = any_grid<T>(grid, tiles * shape.batches * shape.heads, shape.values);
  if (!status.ok() || grid.x == 0) return status;
  varlen_any<T><<<grid, any_block, 0, executor.stream>>>(work, tiles, y, lse);
  return launched();
}

template <class T>
Status varlen_backward_of_any(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  const VarlenShape& shape = work.shape;
  int64_t tiles = RowTiles::count(shape.sequences, shape.queries, any_tile);
  dim3 grid;
  if (Status status = any_grid<T>(grid, tiles * shape.batches * shape.heads, shape.d); !status.ok()) return status;
  if (grid.x > 0) varlen_any_queries<T><<<grid, any_block, 0, executor.stream>>>(work, tiles, gradient);
  if (Status status = launched(); !status.ok()) return status;
  tiles = RowTiles::count(shape.sequences, shape.keys, any_tile);
  Status status = any_grid<T>(grid, tiles * shape.batches * shape.kv_heads, std::max(shape.d, shape.values));
  if (!status.ok() || grid.x == 0) return status;
  varlen_any_keys<T><<<grid, any_block, 0, executor.stream>>>(work, tiles, gradient);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
