// The gradient of the varlen pattern on tensor cores, for half precisions. It has two kernels, each of which computes
// the weights again: one of queries, for dq, and one of keys, for dk and dv, whose products are turned over. So nothing
// is added between blocks. The slopes of products are multiplied by the scale when they are summed.
#pragma once

#include "varlen_mma_block_cuda.h"

namespace baracuda {
namespace internal {

// How many times 16 rows a warp has, rows a tile of the others, warps a block and blocks a multiprocessor.
template <int m_, int others_, int warps_, int blocks_>
struct MmaBackwardSizes {
  static constexpr int m = m_, others = others_, warps = warps_, blocks = blocks_;
  static constexpr int threads = 32 * warps, rows = m * mma_rows * warps;
};

// What is of a query, for its weights and their slopes: those of one that there is not are 0.
struct MmaQuery {
  float log2_sum, dot;

  template <class T>
  __device__ static MmaQuery of(const VarlenGradient<T>& gradient, int64_t row, bool is_one) {
    return is_one ? MmaQuery{gradient.log2_sum(row), gradient.dot[row]} : MmaQuery{-SoftmaxState<float>::nothing, 0};
  }
};

// weight and slope: on entry the product of query and key, and that of dy and value less the query's dot; after it the
// weight, and the slope of the result in the product of query and key, without the scale. That in the score is
// returned.
template <class T, bool plain>
__device__ float differentiate(const MmaScores<T, plain>& score, float log2_sum, int query, int key, float& weight,
                               float& slope) {
  float product = weight;
  weight =
      fast_power_of_two(plain ? fmaf(product, score.score.factor, -log2_sum) : score(product, query, key) - log2_sum);
  float in_score = weight * slope;
  slope = plain ? in_score : in_score * score.score.slope(product, 1.f);
  return in_score;
}

// dq of a tile of queries, and what each gives for the slope of its head.
template <class T, int columns, bool plain, bool listed, class Sizes>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    varlen_mma_queries(Varlen<T> work, int64_t tiles, VarlenGradient<T> gradient) {
  constexpr int m = Sizes::m, size = Sizes::others, steps = columns / 16;
  using Queries = MmaTile<T, mma_pitch(columns), Sizes::rows>;
  using Keys = MmaTile<T, mma_pitch(columns), size>;
  extern __shared__ __align__(1024) unsigned char shared[];
  const VarlenShape& shape = work.shape;
  MmaBlock block = mma_block_of(work, tiles, Sizes::rows, false);
  if (block.tile.begin >= block.tile.end) return;
  Queries q{reinterpret_cast<T*>(shared)};
  uint32_t of_q = shared_address(shared), of_dy = of_q + Queries::bytes;
  uint32_t of_keys = of_dy + Queries::bytes;  // keys, values, and the next ones
  KeyRange queries{block.tile.begin, block.tile.end};
  int64_t kv_head = block.head / shape.group(),
          q_row = work.query_row(block.batch, block.of, queries.begin, block.head);
  int d = int(shape.d), values = int(shape.values), first = int(threadIdx.x) / 32 * m * mma_rows;
  int rows = int(queries.end - queries.begin), seeing = int(min(queries.end, block.of.queries) - queries.begin);
  KeyRange seen = work.keys_of(block.of, queries);
  int64_t begin = seen.begin / size * size, first_row = work.key_row(block.batch, block.of, begin, kv_head);
  int end = int(max(seen.end - begin, int64_t(0))), count = int(block.of.keys - begin);
  int64_t distance = begin - queries.begin - block.of.shift;

  auto keys_of = [&](int from, int to) {  // rows, of which those are left out that see nothing
    return work.keys_of(block.of, {queries.begin + from, queries.begin + min(to, seeing)});
  };
  int last = min(first + m * mma_rows, seeing) - 1;
  MmaSeen is_seen(begin, keys_of(first, last + 1), keys_of(first, first + 1), keys_of(last, last + 1));
  MmaSource<Keys, Sizes::threads> from_k(work.k + first_row * shape.d, shape.kv_heads * shape.d, d);
  MmaSource<Keys, Sizes::threads> from_v(work.v + first_row * shape.values, shape.kv_heads * shape.values, values);
  uint32_t stage = 0;
  // Of listed keys the positions too, of a tile and of the next one.
  auto* positions = reinterpret_cast<int*>(shared + 2 * Queries::bytes + 4 * Keys::bytes);
  auto read = [&](int at, uint32_t to) {
    from_k.read(of_keys + to, count - at);
    from_v.read(of_keys + to + Keys::bytes, count - at);
    if constexpr (listed)
      if (int i = int(threadIdx.x); i < size)
        copy_async_word(positions + (to == 0 ? 0 : size) + i, block.of.positions + begin + at + i, at + i < count);
    __pipeline_commit();
  };
  if (end > 0) {
    MmaSource<Queries, Sizes::threads> from_q(work.q + q_row * shape.d, shape.heads * shape.d, d);
    from_q.read(of_q, rows);
    MmaSource<Queries, Sizes::threads> from_dy(gradient.dy + q_row * shape.values, shape.heads * shape.values, values);
    from_dy.read(of_dy, rows);
    read(0, 0);
  }
  MmaQuery of_query[m][2];
  float of_slope[m][2];
#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = mma_row(first + mma_rows * i, half);
      of_query[i][half] = MmaQuery::of(gradient, q_row + row * shape.heads, row < seeing);
      of_slope[i][half] = 0;
    }
  uint32_t left = first * Queries::pitch + Queries::as_left();
  MmaRows<m, columns> sums;
  sums.clear();
#pragma unroll 1
  for (int at = 0; at < end; at += size) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile is there, and all have done with the one before
    if (at + size < end) read(at + size, stage ^ (2 * Keys::bytes));
    uint32_t now = of_keys + stage;
    MmaColumns<listed> column_of{positions + (stage == 0 ? 0 : size), begin + at, count - at};
    stage ^= 2 * Keys::bytes;
    auto band_of_tile = [&] {
      return MmaBand(distance + at, work.left, work.right, listed ? MmaBand::most : count - at);
    };
    bool all = false, any = is_seen.any(at);
    if constexpr (listed) column_of.template seen<size>(band_of_tile(), first, last, any, all);
    if (!any) continue;
    MmaRows<m, size> s, ds;
    s.clear();
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) ds.each(i, half, [&](float& x, int) { x = -of_query[i][half].dot; });
    s.template add_product<steps, Queries, Keys>(of_q + left, now + Keys::as_right());
    ds.template add_product<steps, Queries, Keys>(of_dy + left, now + Keys::bytes + Keys::as_right());
    MmaScores<T, plain> score(work, block, block.head, queries.begin, begin + at);
    MmaBand band = band_of_tile();
    if constexpr (!listed) all = is_seen.all(at, size);
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int row = mma_row(first + mma_rows * i, half);
#pragma unroll
        for (int j = 0; j < size / 8; ++j)
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            int column = column_of(mma_column(j, e));
            float in_score =
                differentiate(score, of_query[i][half].log2_sum, row, column, s.part[i][j][e], ds.part[i][j][e]);
            if constexpr (!plain)
              of_slope[i][half] += all || band(row, column) ? in_score * score.from_to(row, column) : 0.f;
          }
      }
    if (!all)
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = mma_row(first + mma_rows * i, half);
          ds.each(i, half, [&](float& x, int column) { x = band(row, column_of(column)) ? x : 0.f; });
        }
    sums.template add_product_of_rows<Keys>(ds, now + Keys::as_left());
  }
#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float slope = sum_of_row(of_slope[i][half]);
      int row = mma_row(first + mma_rows * i, half);
      if (threadIdx.x % 4 == 0 && row < rows) gradient.dslope[q_row + row * shape.heads] = slope;
      sums.each(i, half, [&](float& x, int) { x = row < seeing ? x * float(work.scale) : 0.f; });
    }
  sums.write(q, first, gradient.dq + q_row * shape.d, shape.heads * shape.d, rows, d);
}

// dk and dv of a tile of keys: the products are turned over, so that keys are rows.
template <class T, int columns, bool plain, bool listed, class Sizes>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    varlen_mma_keys(Varlen<T> work, int64_t tiles, VarlenGradient<T> gradient) {
  constexpr int m = Sizes::m, size = Sizes::others, steps = columns / 16;
  using Keys = MmaTile<T, mma_pitch(columns), Sizes::rows>;
  using Queries = MmaTile<T, mma_pitch(columns), size>;
  extern __shared__ __align__(1024) unsigned char shared[];
  const VarlenShape& shape = work.shape;
  MmaBlock block = mma_block_of(work, tiles, Sizes::rows, true);
  if (block.tile.begin >= block.tile.end) return;
  Keys k{reinterpret_cast<T*>(shared)}, v{k.at + Keys::rows * mma_pitch(columns)};
  uint32_t of_k = shared_address(k.at), of_v = of_k + Keys::bytes;
  uint32_t of_queries = of_v + Keys::bytes;  // queries, dy, and the next ones
  auto* log2_sums = reinterpret_cast<float*>(shared + 2 * Keys::bytes + 4 * Queries::bytes);
  float* dots = log2_sums + 2 * size;  // of them and the next ones
  int64_t kv_head = block.head, k_row = work.key_row(block.batch, block.of, block.tile.begin, kv_head);
  KeyRange keys{block.tile.begin, min(block.tile.end, block.of.keys)}, seeing = work.queries_of(block.of, keys);
  int d = int(shape.d), values = int(shape.values), first = int(threadIdx.x) / 32 * m * mma_rows;
  int rows = int(block.tile.end - block.tile.begin), seen = int(keys.end - keys.begin);
  int64_t begin = seeing.begin / size * size, group = shape.group();
  int end = int(max(seeing.end - begin, int64_t(0))), count = int(block.of.queries - begin);
  int64_t first_row = work.query_row(block.batch, block.of, begin, kv_head * group);
  int64_t distance = keys.begin - begin - block.of.shift;  // of the first query from the first key

  auto queries_of = [&](int from, int to) {
    return work.queries_of(block.of, {keys.begin + from, keys.begin + min(to, seen)});
  };
  int last = min(first + m * mma_rows, seen) - 1;
  MmaSeen is_seen(begin, queries_of(first, last + 1), queries_of(first, first + 1), queries_of(last, last + 1));
  if (is_seen.all_end >= count) is_seen.all_end = std::numeric_limits<int>::max();  // later ones weigh nothing
  MmaSource<Queries, Sizes::threads> from_q(work.q + first_row * shape.d, shape.heads * shape.d, d);
  MmaSource<Queries, Sizes::threads> from_dy(gradient.dy + first_row * shape.values, shape.heads * shape.values,
                                             values);
  // A tile of queries of a head, and what is of the thread's query.
  auto read = [&](int at, uint32_t to) {
    from_q.read(of_queries + to, count - at);
    from_dy.read(of_queries + to + Queries::bytes, count - at);
    __pipeline_commit();
  };
  auto of_thread = [&](int at, int64_t head) {
    int64_t row = at + int64_t(threadIdx.x);
    return MmaQuery::of(gradient, first_row + head + row * shape.heads, int(threadIdx.x) < size && row < count);
  };
  auto keep = [&](MmaQuery of, int stage) {
    if (int(threadIdx.x) < size)
      log2_sums[stage * size + threadIdx.x] = of.log2_sum, dots[stage * size + threadIdx.x] = of.dot;
  };
  MmaRowsOfKeys<listed, m> row_of(block.of, keys.begin, first, seen);
  MmaRows<m, columns> dk, dv;
  dk.clear(), dv.clear();
  if (end > 0) {
    MmaSource<Keys, Sizes::threads> from_k(work.k + k_row * shape.d, shape.kv_heads * shape.d, d);
    from_k.read(of_k, seen);
    MmaSource<Keys, Sizes::threads> from_v(work.v + k_row * shape.values, shape.kv_heads * shape.values, values);
    from_v.read(of_v, seen);
    read(0, 0);
    keep(of_thread(0, 0), 0);
  }
  uint32_t left = first * Keys::pitch + Keys::as_left();
  int at = 0, stage = 0;
  int64_t head = 0;
#pragma unroll 1
  while (head < group && end > 0) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile is there, and all have done with the one before
    int next = at + size;
    int64_t next_head = head;
    if (next >= end) {  // the rows of the next head begin again
      from_q.next += shape.d - next * from_q.stride;
      from_dy.next += shape.values - next * from_dy.stride;
      next = 0, ++next_head;
    }
    MmaQuery of_next;
    if (next_head < group) {
      read(next, (stage ^ 1) * 2 * Queries::bytes);
      of_next = of_thread(next, next_head);
    }
    bool all = is_seen.all(at, size), any = is_seen.any(at);
    // A key sees the queries from -right to left from its own on.
    auto band_of_tile = [&] { return MmaBand(at - distance, work.right, work.left, count - at); };
    if constexpr (listed) row_of.template seen<size>(band_of_tile(), any, all);
    if (any) {
      uint32_t now = of_queries + stage * 2 * Queries::bytes;
      auto each_pair = [&](const float* of, auto&& change) {
#pragma unroll
        for (int j = 0; j < size / 8; ++j) change(j, *reinterpret_cast<const float2*>(of + mma_column(j, 0)));
      };
      MmaRows<m, size> s, ds;
      s.clear();
      each_pair(dots + stage * size, [&](int j, float2 dot) {
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e) ds.part[i][j][e] = e % 2 ? -dot.y : -dot.x;
      });
      s.template add_product<steps, Keys, Queries>(of_k + left, now + Queries::as_right());
      ds.template add_product<steps, Keys, Queries>(of_v + left, now + Queries::bytes + Queries::as_right());
      MmaScores<T, plain> score(work, block, kv_head * group + head, begin + at, keys.begin);
      each_pair(log2_sums + stage * size, [&](int j, float2 log2_sum) {
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            differentiate(score, e % 2 ? log2_sum.y : log2_sum.x, mma_column(j, e), row_of(i, e / 2), s.part[i][j][e],
                          ds.part[i][j][e]);
      });
      if (!all) {
        MmaBand band = band_of_tile();
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            int row = row_of(i, half);
            bool somewhere = !listed || row != MmaBand::most;
            s.each(i, half, [&](float& x, int column) { x = somewhere && band(row, column) ? x : 0.f; });
            ds.each(i, half, [&](float& x, int column) { x = somewhere && band(row, column) ? x : 0.f; });
          }
      }
      dv.template add_product_of_rows<Queries>(s, now + Queries::bytes + Queries::as_left());
      dk.template add_product_of_rows<Queries>(ds, now + Queries::as_left());
    }
    stage ^= 1;
    if (next_head < group) keep(of_next, stage);
    at = next, head = next_head;
  }
#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      bool is_seen_by_some = mma_row(first + mma_rows * i, half) < seen;
      dk.each(i, half, [&](float& x, int) { x = is_seen_by_some ? x * float(work.scale) : 0.f; });
      dv.each(i, half, [&](float& x, int) { x = is_seen_by_some ? x : 0.f; });
    }
  // The tiles of keys and values are read no more by other warps: each has rows of its own.
  dk.write(k, first, gradient.dk + k_row * shape.d, shape.kv_heads * shape.d, rows, d);
  dv.write(v, first, gradient.dv + k_row * shape.values, shape.kv_heads * shape.values, rows, values);
}

template <class T, int columns, bool plain, bool listed, class Sizes>
Status varlen_mma_queries_of(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  constexpr int of_positions = listed ? 2 * Sizes::others * int(sizeof(int)) : 0;
  constexpr int bytes = (2 * Sizes::rows + 4 * Sizes::others) * mma_pitch(columns) * int(sizeof(T)) + of_positions;
  return launch_mma(executor, varlen_mma_queries<T, columns, plain, listed, Sizes>, work, false, Sizes::rows,
                    Sizes::threads, bytes, gradient);
}

template <class T, int columns, bool plain, bool listed, class Sizes>
Status varlen_mma_keys_of(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  constexpr int of_rows = 4 * Sizes::others * int(sizeof(float));
  constexpr int bytes = (2 * Sizes::rows + 4 * Sizes::others) * mma_pitch(columns) * int(sizeof(T)) + of_rows;
  return launch_mma(executor, varlen_mma_keys<T, columns, plain, listed, Sizes>, work, true, Sizes::rows,
                    Sizes::threads, bytes, gradient);
}

}  // namespace internal
}  // namespace baracuda
