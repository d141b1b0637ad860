// The varlen pattern on tensor cores, for half precisions. A block has a tile of rows in shared memory, 16 of a warp,
// and goes through tiles of the others. A row's columns are in chunks of 16 bytes, of which those of eight neighboring
// rows are in different banks. What is summed stays in registers.
//
// The gradient has two kernels, each of which computes the weights again: one of queries, for dq, and one of keys, for
// dk and dv, whose products are turned over. So nothing is added between blocks.
#pragma once

#include "copy_async_cuda.h"
#include "mma_cuda.h"
#include "shared_memory_cuda.h"
#include "varlen.h"

namespace baracuda {
namespace internal {

inline constexpr int mma_tile = 64, mma_warps = 4, mma_block = mma_warps * 32, mma_rows = 16;

// 2^x for x <= 0, to two units in the last block; 0 where that is subnormal.
__device__ inline float fast_power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A tile of rows of D columns in shared memory.
template <class T, int D, int tile_rows = mma_tile>
struct MmaTile {
  static constexpr int chunk = 8, chunks = D / chunk, bytes = tile_rows * D * int(sizeof(T));
  static constexpr uint32_t pitch = D * sizeof(T);
  static_assert(mma_block / chunks % 8 == 0);  // rows that are read together have the same order of chunks
  T* at;

  __device__ T* address(int row, int number) const { return at + row * D + ((number ^ (row & 7)) * chunk); }
  // Begins to read rows; those from `count` on, and columns from `columns` on, become 0.
  __device__ void read(const T* from, int64_t stride, int count, int columns) const {
    constexpr int together = mma_block / chunks;  // rows
    int row = int(threadIdx.x) / chunks, number = int(threadIdx.x) % chunks;
    const T* next = from + row * stride + number * chunk;
    uint32_t to = shared_address(address(row, number));
    int rows = number * chunk < columns ? count - row : 0;
#pragma unroll 2
    for (int i = 0; i < tile_rows; i += together) {
      copy_async(to, i < rows ? next : from, i < rows ? 16 : 0);
      next += together * stride, to += together * pitch;
    }
  }
  // Where a lane finds its row of the chunks 0 and 1, from a row that is a multiple of 8 on. Those of the chunks 2 k
  // and 2 k + 1 are at this ^ step(k), those of n rows further on at n * pitch more.
  static __device__ uint32_t step(int k) { return uint32_t(k) * 2 * chunk * sizeof(T); }
  __device__ uint32_t lane_address(int row, int number) const { return shared_address(address(row, number)); }

  // Of A: 16 rows from `row` on, of the step k of 16 columns.
  __device__ uint32_t as_left(int row) const { return lane_address(row + threadIdx.x % 16, threadIdx.x % 32 / 16); }
  static __device__ void left(uint32_t (&a)[4], uint32_t at, int row, int k) {
    load_matrices(a, (at ^ step(k)) + row * pitch);
  }
  // Of two Bs, whose columns are 8 rows each: 16 rows, of the step k of 16 columns.
  __device__ uint32_t as_right() const {
    int lane = threadIdx.x % 32;
    return lane_address(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  static __device__ void right(uint32_t (&b)[2][2], uint32_t at, int row, int k) {
    uint32_t all[4];
    load_matrices(all, (at ^ step(k)) + row * pitch);
    b[0][0] = all[0], b[0][1] = all[1], b[1][0] = all[2], b[1][1] = all[3];
  }
  // Of two Bs, whose columns are 8 columns each: 16 rows, of the step k of 16 columns.
  __device__ uint32_t as_right_of_rows() const { return as_left(0); }
  static __device__ void right_of_rows(uint32_t (&b)[2][2], uint32_t at, int row, int k) {
    uint32_t all[4];
    load_transposed_matrices(all, (at ^ step(k)) + row * pitch);
    b[0][0] = all[0], b[0][1] = all[1], b[1][0] = all[2], b[1][1] = all[3];
  }
};

// A lane's elements of the parts of a warp's rows: those of a half are in one row, element e of part j in a column.
__device__ inline int mma_row(int first, int half) { return first + int(threadIdx.x) % 32 / 4 + half * 8; }
__device__ inline int mma_column(int j, int e) { return 8 * j + int(threadIdx.x) % 4 * 2 + e % 2; }

// m times 16 rows of a warp, of n columns, in parts of 8.
template <int m, int n>
struct MmaRows {
  float part[m][n / 8][4];

  template <class Each>
  __device__ void each(int i, int half, const Each& change) {
#pragma unroll
    for (int j = 0; j < n / 8; ++j)
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) change(part[i][j][e], mma_column(j, e));
  }
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) each(i, half, [](float& x, int) { x = 0; });
  }
  // Rows of a, from `row` on, times n rows of b.
  template <class T, int D, int a_rows>
  __device__ void add_product(const MmaTile<T, D, a_rows>& a, int row, const MmaTile<T, D>& b, int from, int columns) {
    uint32_t of_a = a.as_left(row), of_b = b.as_right();
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      if (16 * k >= columns) break;
      uint32_t left[m][4], right[2][2];
#pragma unroll
      for (int i = 0; i < m; ++i) a.left(left[i], of_a, 16 * i, k);
#pragma unroll
      for (int j = 0; j < n / 16; ++j) {
        b.right(right, of_b, from + 16 * j, k);
#pragma unroll
        for (int i = 0; i < m; ++i) {
          multiply_add<T>(part[i][2 * j], left[i], right[0]);
          multiply_add<T>(part[i][2 * j + 1], left[i], right[1]);
        }
      }
    }
  }
  // Weights, rounded, times as many rows of b.
  template <class T, int count>
  __device__ void add_product(const MmaRows<m, count>& weights, const MmaTile<T, n>& b, int from, int columns) {
    uint32_t of_b = b.as_right_of_rows();
#pragma unroll
    for (int k = 0; k < count / 16; ++k) {
      uint32_t left[m][4], right[2][2];
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float* pair = weights.part[i][2 * k + j / 2] + j % 2 * 2;
          left[i][j] = rounded_pair<T>(pair[0], pair[1]);
        }
#pragma unroll
      for (int j = 0; j < n / 16; ++j) {
        if (16 * j >= columns) break;
        b.right_of_rows(right, of_b, from + 16 * k, j);
#pragma unroll
        for (int i = 0; i < m; ++i) {
          multiply_add<T>(part[i][2 * j], left[i], right[0]);
          multiply_add<T>(part[i][2 * j + 1], left[i], right[1]);
        }
      }
    }
  }
  // Rounds the rows and writes them by way of a tile, which the warp alone uses of these rows.
  template <class T, int rows>
  __device__ void write(const MmaTile<T, n, rows>& by, int first, T* to, int64_t stride, int count, int columns) const {
    int lane = threadIdx.x % 32, r = lane / 4, c = lane % 4;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < n / 8; ++j) {
        const float* of = part[i][j];
        *reinterpret_cast<uint32_t*>(by.address(first + 16 * i + r, j) + 2 * c) = rounded_pair<T>(of[0], of[1]);
        *reinterpret_cast<uint32_t*>(by.address(first + 16 * i + r + 8, j) + 2 * c) = rounded_pair<T>(of[2], of[3]);
      }
    __syncwarp();
    constexpr int chunks = MmaTile<T, n, rows>::chunks, chunk = MmaTile<T, n, rows>::chunk;
    for (int all = lane; all < m * mma_rows * chunks; all += 32) {
      int row = first + all / chunks, number = all % chunks;
      if (row < count && number * chunk < columns)
        *reinterpret_cast<uint4*>(to + row * stride + number * chunk) =
            *reinterpret_cast<const uint4*>(by.address(row, number));
    }
  }
};

// What a block works on: a tile of queries or of keys of a head.
struct MmaBlock {
  int64_t batch, head;
  RowTiles::Tile tile;
  VarlenSequence of;
};

// Heavy tiles come first: with a causal mask the last queries of a sequence see most keys, and its first keys are seen
// by most.
template <class T>
__device__ MmaBlock mma_block_of(const Varlen<T>& work, int64_t tiles, int64_t size, bool of_keys) {
  int64_t heads = of_keys ? work.shape.kv_heads : work.shape.heads, all = work.shape.batches * heads;
  int64_t number = int64_t(blockIdx.x) / all, head = int64_t(blockIdx.x) % all, batch = head / heads;
  RowTiles cut = of_keys ? work.key_tiles(batch, size) : work.query_tiles(batch, size);
  RowTiles::Tile tile = cut(of_keys ? number : tiles - 1 - number);
  return {batch, head % heads, tile, work.sequence(batch, tile.sequence)};
}

// What a row sees of a tile's columns.
struct MmaSeen {
  int begin, end;

  __device__ MmaSeen(KeyRange range, int64_t tile) : begin(within(range.begin - tile)), end(within(range.end - tile)) {}
  __device__ bool operator()(int column) const { return column >= begin && column < end; }
  static __device__ int within(int64_t i) { return int(min(max(i, int64_t(0)), int64_t(mma_tile))); }
};

// Scores of a tile of queries and one of keys, in units of log(2), of products of the query and the key that begin the
// tiles plus so many.
template <class T, bool plain>
struct MmaScores {
  AttentionScore<float> score;
  float slope, distance;

  __device__ MmaScores(const Varlen<T>& work, const MmaBlock& block, int64_t head, int64_t query, int64_t key)
      : score(work.score),
        slope(plain ? 0.f : work.slope(block.batch, head)),
        distance(float(key - query - block.of.shift)) {}
  __device__ float operator()(float product, int query, int key) const {
    if constexpr (plain) return product * score.factor;
    return score(product, slope, from_to(query, key));
  }
  __device__ float from_to(int query, int key) const { return distance + float(key - query); }
};

// How many times 16 queries a warp has, and how many keys it weighs at a time.
template <int D>
struct MmaForward {
  static constexpr int m = 2, keys = D > 64 ? 32 : 64, queries = m * mma_rows * mma_warps, blocks = 2;
};

// y and lse of a tile of queries.
template <class T, int D, bool plain, class Sizes = MmaForward<D>>
__global__ void __launch_bounds__(mma_block, Sizes::blocks)
    varlen_mma(Varlen<T> work, int64_t tiles, T* y, float* lse) {
  using State = SoftmaxState<float>;
  constexpr int m = Sizes::m, together = Sizes::keys;
  extern __shared__ __align__(1024) unsigned char shared[];
  MmaTile<T, D, Sizes::queries> q{reinterpret_cast<T*>(shared)};
  MmaTile<T, D> k{q.at + Sizes::queries * D}, v{k.at + mma_tile * D};
  const VarlenShape& shape = work.shape;
  MmaBlock block = mma_block_of(work, tiles, Sizes::queries, false);
  if (block.tile.begin >= block.tile.end) return;
  KeyRange queries{block.tile.begin, block.tile.end};
  int64_t kv_head = block.head / shape.group(),
          y_row = work.query_row(block.batch, block.of, queries.begin, block.head);
  int d = int(shape.d), values = int(shape.values), first = int(threadIdx.x) / 32 * m * mma_rows;
  int rows = int(queries.end - queries.begin);
  KeyRange seen = work.keys_of(block.of, queries);
  int64_t begin = seen.begin / mma_tile * mma_tile;

  auto key_row = [&](int64_t key) { return work.key_row(block.batch, block.of, key, kv_head); };
  auto count = [&](int64_t key) { return int(min(block.of.keys - key, int64_t(mma_tile))); };
  auto read_k = [&](int64_t key) {
    k.read(work.k + key_row(key) * shape.d, shape.kv_heads * shape.d, count(key), d);
    __pipeline_commit();
  };
  float largest[m][2], total[m][2];
#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) largest[i][half] = State::nothing, total[i][half] = 0;
  MmaRows<m, D> sums;
  sums.clear();
  if (begin < seen.end) {
    q.read(work.q + y_row * shape.d, shape.heads * shape.d, rows, d);
    read_k(begin);
  }
  for (int64_t key = begin; key < seen.end; key += mma_tile) {
    __pipeline_wait_prior(0);
    __syncthreads();
    v.read(work.v + key_row(key) * shape.values, shape.kv_heads * shape.values, count(key), values);
    __pipeline_commit();
    MmaScores<T, plain> score(work, block, block.head, queries.begin, key);
    bool all = work.see_all(block.of, {queries.begin, queries.begin + Sizes::queries}, {key, key + mma_tile});
#pragma unroll
    for (int from = 0; from < mma_tile; from += together) {
      MmaRows<m, together> s;
      s.clear();
      s.add_product(q, first, k, from, d);
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = mma_row(first + 16 * i, half);
          s.each(i, half, [&](float& x, int column) { x = score(x, row, from + column); });
          if (!all) {
            int64_t query = queries.begin + row;
            MmaSeen is_seen(work.keys_of(block.of, {query, query + 1}), key);
            s.each(i, half, [&](float& x, int column) { x = is_seen(from + column) ? x : State::nothing; });
          }
          float top = largest[i][half];
          s.each(i, half, [&](float& x, int) { top = State::larger(top, x); });
          top = State::larger(top, __shfl_xor_sync(~0u, top, 1));
          top = State::larger(top, __shfl_xor_sync(~0u, top, 2));
          float reference = State::reference(top), kept = fast_power_of_two(largest[i][half] - reference), sum = 0;
          s.each(i, half, [&](float& x, int) { sum += x = fast_power_of_two(x - reference); });
          largest[i][half] = top;
          total[i][half] = total[i][half] * kept + sum;
          sums.each(i, half, [&](float& x, int) { x *= kept; });
        }
      if (from == 0) {
        __pipeline_wait_prior(0);
        __syncthreads();  // the values are there
      }
      if (from + together == mma_tile) {
        if (from > 0) __syncthreads();  // all have done with the keys
        if (key + mma_tile < seen.end) read_k(key + mma_tile);
      }
      sums.add_product(s, v, from, values);
    }
  }

#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& sum = total[i][half];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      State state{largest[i][half], sum};
      float factor = state.is_empty() ? 0.f : 1 / state.total;
      sums.each(i, half, [&](float& x, int) { x *= factor; });
      int row = mma_row(first + 16 * i, half);
      if (threadIdx.x % 4 == 0 && row < rows) lse[y_row + row * shape.heads] = state.log_sum_exp();
    }
  sums.write(q, first, y + y_row * shape.values, shape.heads * shape.values, rows, values);
}

// What is of a query, for its weights and their slopes: those of one that there is not are 0.
struct MmaQuery {
  float log2_sum, dot;

  template <class T>
  __device__ static MmaQuery of(const VarlenGradient<T>& gradient, int64_t row, bool is_one) {
    return is_one ? MmaQuery{gradient.log2_sum(row), gradient.dot[row]} : MmaQuery{-SoftmaxState<float>::nothing, 0};
  }
};

// weight and slope: on entry the products of query and key, and of dy and value; after it the weight, and the slope of
// the result in the product of query and key. That in the score is returned.
template <class T, bool plain>
__device__ float differentiate(const MmaScores<T, plain>& score, float scale, MmaQuery of, bool is_seen, int query,
                               int key, float& weight, float& slope) {
  float product = weight;
  weight = is_seen ? fast_power_of_two(score(product, query, key) - of.log2_sum) : 0.f;
  float in_score = is_seen ? weight * (slope - of.dot) : 0.f;
  slope = in_score * (plain ? scale : score.score.slope(product, scale));
  return in_score;
}

// dq of a tile of queries, and what each gives for the slope of its head.
template <class T, int D, bool plain>
__global__ void __launch_bounds__(mma_block, D > 64 ? 2 : 3)
    varlen_mma_queries(Varlen<T> work, int64_t tiles, VarlenGradient<T> gradient) {
  extern __shared__ __align__(1024) unsigned char shared[];
  using Tile = MmaTile<T, D>;
  Tile q{reinterpret_cast<T*>(shared)}, dy{q.at + mma_tile * D}, k{dy.at + mma_tile * D}, v{k.at + mma_tile * D};
  const VarlenShape& shape = work.shape;
  MmaBlock block = mma_block_of(work, tiles, mma_tile, false);
  if (block.tile.begin >= block.tile.end) return;
  KeyRange queries{block.tile.begin, block.tile.end};
  int64_t kv_head = block.head / shape.group();
  int d = int(shape.d), values = int(shape.values), first = int(threadIdx.x) / 32 * mma_rows;
  int rows = int(queries.end - queries.begin);
  KeyRange seen = work.keys_of(block.of, queries);
  int64_t q_row = work.query_row(block.batch, block.of, queries.begin, block.head);
  MmaQuery of_query[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int row = mma_row(first, half);
    of_query[half] = MmaQuery::of(gradient, q_row + row * shape.heads, row < rows);
  }
  auto key_row = [&](int64_t key) { return work.key_row(block.batch, block.of, key, kv_head); };
  auto read = [&](int64_t key) {
    int count = int(min(block.of.keys - key, int64_t(mma_tile)));
    k.read(work.k + key_row(key) * shape.d, shape.kv_heads * shape.d, count, d);
    v.read(work.v + key_row(key) * shape.values, shape.kv_heads * shape.values, count, values);
    __pipeline_commit();
  };
  MmaRows<1, D> sums;
  sums.clear();
  float of_slope[2] = {0, 0};
  int64_t begin = seen.begin / mma_tile * mma_tile;
  if (begin < seen.end) {
    q.read(work.q + q_row * shape.d, shape.heads * shape.d, rows, d);
    dy.read(gradient.dy + q_row * shape.values, shape.heads * shape.values, rows, values);
  }
  for (int64_t key = begin; key < seen.end; key += mma_tile) {
    __syncthreads();  // all have done with the keys before
    read(key);
    __pipeline_wait_prior(0);
    __syncthreads();
    MmaRows<1, mma_tile> s, ds;
    s.clear(), ds.clear();
    s.add_product(q, first, k, 0, d);
    ds.add_product(dy, first, v, 0, values);
    MmaScores<T, plain> score(work, block, block.head, queries.begin, key);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = mma_row(first, half);
      int64_t query = queries.begin + row;
      MmaSeen is_seen(work.keys_of(block.of, {query, query + 1}), key);
#pragma unroll
      for (int j = 0; j < mma_tile / 8; ++j)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          int column = mma_column(j, e);
          float in_score = differentiate(score, float(work.scale), of_query[half], is_seen(column), row, column,
                                         s.part[0][j][e], ds.part[0][j][e]);
          if constexpr (!plain) of_slope[half] += in_score * score.from_to(row, column);
        }
    }
    sums.add_product(ds, k, 0, d);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    of_slope[half] += __shfl_xor_sync(~0u, of_slope[half], 1);
    of_slope[half] += __shfl_xor_sync(~0u, of_slope[half], 2);
    int row = mma_row(first, half);
    if (threadIdx.x % 4 == 0 && row < rows) gradient.dslope[q_row + row * shape.heads] = of_slope[half];
  }
  sums.write(q, first, gradient.dq + q_row * shape.d, shape.heads * shape.d, rows, d);
}

// dk and dv of a tile of keys: the products are turned over, so that keys are rows.
template <class T, int D, bool plain>
__global__ void __launch_bounds__(mma_block, D > 64 ? 2 : 3)
    varlen_mma_keys(Varlen<T> work, int64_t tiles, VarlenGradient<T> gradient) {
  extern __shared__ __align__(1024) unsigned char shared[];
  using Tile = MmaTile<T, D>;
  Tile k{reinterpret_cast<T*>(shared)}, v{k.at + mma_tile * D}, q{v.at + mma_tile * D}, dy{q.at + mma_tile * D};
  auto* of_query = reinterpret_cast<MmaQuery*>(dy.at + mma_tile * D);
  const VarlenShape& shape = work.shape;
  MmaBlock block = mma_block_of(work, tiles, mma_tile, true);
  if (block.tile.begin >= block.tile.end) return;
  int64_t kv_head = block.head, k_row = work.key_row(block.batch, block.of, block.tile.begin, kv_head);
  KeyRange keys{block.tile.begin, min(block.tile.end, block.of.keys)}, seeing = work.queries_of(block.of, keys);
  int d = int(shape.d), values = int(shape.values), first = int(threadIdx.x) / 32 * mma_rows;
  int rows = int(block.tile.end - block.tile.begin);
  int64_t begin = seeing.begin / mma_tile * mma_tile;
  MmaRows<1, D> dk, dv;
  dk.clear(), dv.clear();
  if (begin < seeing.end) {
    int count = int(keys.end - keys.begin);
    k.read(work.k + k_row * shape.d, shape.kv_heads * shape.d, count, d);
    v.read(work.v + k_row * shape.values, shape.kv_heads * shape.values, count, values);
  }
  for (int64_t head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); ++head) {
    for (int64_t query = begin; query < seeing.end; query += mma_tile) {
      int64_t q_row = work.query_row(block.batch, block.of, query, head);
      int count = int(min(block.of.queries - query, int64_t(mma_tile)));
      __syncthreads();  // all have done with the queries before
      q.read(work.q + q_row * shape.d, shape.heads * shape.d, count, d);
      dy.read(gradient.dy + q_row * shape.values, shape.heads * shape.values, count, values);
      __pipeline_commit();
      if (int row = int(threadIdx.x); row < mma_tile)
        of_query[row] = MmaQuery::of(gradient, q_row + row * shape.heads, row < count);
      __pipeline_wait_prior(0);
      __syncthreads();
      MmaScores<T, plain> score(work, block, head, query, keys.begin);
      constexpr int part = mma_tile / 2;  // of the queries: for all of them there are not enough registers
#pragma unroll 1
      for (int from = 0; from < mma_tile; from += part) {
        MmaRows<1, part> s, ds;
        s.clear(), ds.clear();
        s.add_product(k, first, q, from, d);
        ds.add_product(v, first, dy, from, values);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = mma_row(first, half);
          int64_t key = keys.begin + row;
          MmaSeen is_seen(work.queries_of(block.of, {key, key + 1}), query);
#pragma unroll
          for (int j = 0; j < part / 8; ++j)
#pragma unroll
            for (int e = 2 * half; e < 2 * half + 2; ++e) {
              int column = from + mma_column(j, e);
              differentiate(score, float(work.scale), of_query[column], is_seen(column), column, row, s.part[0][j][e],
                            ds.part[0][j][e]);
            }
        }
        dv.add_product(s, dy, from, values);
        dk.add_product(ds, q, from, d);
      }
    }
  }
  // The tiles of keys and values are read no more by other warps: each has rows of its own.
  dk.write(k, first, gradient.dk + k_row * shape.d, shape.kv_heads * shape.d, rows, d);
  dv.write(v, first, gradient.dv + k_row * shape.values, shape.kv_heads * shape.values, rows, values);
}

template <class T, int D, bool plain, class Sizes = MmaForward<D>>
Status varlen_mma_of(const Executor& executor, const Varlen<T>& work, T* y, float* lse) {
  const VarlenShape& shape = work.shape;
  int64_t tiles = RowTiles::count(shape.sequences, shape.queries, Sizes::queries);
  int64_t blocks = tiles * shape.batches * shape.heads;
  if (blocks > (int64_t(1) << 31) - 1) return {"there are more than 2^31 - 1 tiles of queries"};
  constexpr int bytes = MmaTile<T, D, Sizes::queries>::bytes + 2 * MmaTile<T, D>::bytes;
  auto run = varlen_mma<T, D, plain, Sizes>;
  if (Status status = allow_shared_memory(run, bytes); !status.ok()) return status;
  run<<<unsigned(blocks), mma_block, bytes, executor.stream>>>(work, tiles, y, lse);
  return launched();
}

template <class T, int D, bool plain>
Status varlen_mma_backward_of(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  const VarlenShape& shape = work.shape;
  constexpr int64_t most = (int64_t(1) << 31) - 1;
  int64_t of_queries = RowTiles::count(shape.sequences, shape.queries, mma_tile);
  int64_t of_keys = RowTiles::count(shape.sequences, shape.keys, mma_tile);
  int64_t blocks = of_queries * shape.batches * shape.heads, key_blocks = of_keys * shape.batches * shape.kv_heads;
  if (blocks > most || key_blocks > most) return {"there are more than 2^31 - 1 tiles of queries or keys"};
  constexpr int bytes = 4 * MmaTile<T, D>::bytes, of_rows = mma_tile * int(sizeof(MmaQuery));
  if (Status status = allow_shared_memory(varlen_mma_queries<T, D, plain>, bytes); !status.ok()) return status;
  if (Status status = allow_shared_memory(varlen_mma_keys<T, D, plain>, bytes + of_rows); !status.ok()) return status;
  varlen_mma_queries<T, D, plain><<<unsigned(blocks), mma_block, bytes, executor.stream>>>(work, of_queries, gradient);
  if (Status status = launched(); !status.ok() || key_blocks == 0) return status;
  varlen_mma_keys<T, D, plain>
      <<<unsigned(key_blocks), mma_block, bytes + of_rows, executor.stream>>>(work, of_keys, gradient);
  return launched();
}

// Whether tensor cores compute this: rows are of whole chunks, which begin at multiples of 16 bytes.
template <class T>
bool has_mma(const VarlenShape& shape) {
  return sizeof(T) == 2 && shape.d % 8 == 0 && shape.values % 8 == 0 && shape.d > 0 && shape.values > 0 &&
         shape.d <= 128 && shape.values <= 128;
}

// Calls run of the number of columns of a tile, and whether scores are products alone.
template <class T, class Run>
Status by_mma(const Varlen<T>& work, const Run& run) {
  bool plain = !work.biased && !(work.score.cap > 0), is_wide = work.shape.d > 64 || work.shape.values > 64;
  std::integral_constant<int, 64> few;
  std::integral_constant<int, 128> many;
  if (is_wide) return plain ? run(many, std::true_type{}) : run(many, std::false_type{});
  return plain ? run(few, std::true_type{}) : run(few, std::false_type{});
}

}  // namespace internal
}  // namespace baracuda
