// The varlen pattern's gradient of keys and values on tensor cores by pairs of warps.
#pragma once

#include "varlen_mma_backward_cuda.h"

namespace baracuda {
namespace internal {

// How many warps a block, and blocks a multiprocessor.
template <int warps_, int blocks_>
struct MmaPairSizes {
  static constexpr int others = 64, warps = warps_, blocks = blocks_;
  static constexpr int threads = 32 * warps, rows = warps / 2 * 2 * mma_rows;
};

// Waits for the other warp of a pair.
__device__ inline void wait_for_pair(int pair) { asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory"); }

__device__ inline uint4 as_vector(const uint32_t (&x)[4]) { return {x[0], x[1], x[2], x[3]}; }
__device__ inline void from_vector(uint32_t (&x)[4], uint4 of) { x[0] = of.x, x[1] = of.y, x[2] = of.z, x[3] = of.w; }

// dk and dv of a tile of keys, for many columns. A pair of warps has 32 keys, and each of them half of the queries for
// the weights and half of the columns for the sums: so it reads less of shared memory than one that has 16 keys.
// Rounded weights are exchanged as fragments.
template <class T, int columns, bool plain, class Sizes>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    varlen_mma_pairs(Varlen<T> work, int64_t tiles, VarlenGradient<T> gradient) {
  constexpr int m = 2, size = Sizes::others, own = size / 2, steps = columns / 16;
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
  auto* exchanged = reinterpret_cast<uint4*>(dots + 2 * size);
  int64_t kv_head = block.head, k_row = work.key_row(block.batch, block.of, block.tile.begin, kv_head);
  KeyRange keys{block.tile.begin, min(block.tile.end, block.of.keys)}, seeing = work.queries_of(block.of, keys);
  int d = int(shape.d), values = int(shape.values), first = int(threadIdx.x) / 64 * m * mma_rows;
  int half_of_pair = int(threadIdx.x) / 32 % 2;
  int rows = int(block.tile.end - block.tile.begin), seen = int(keys.end - keys.begin);
  int64_t begin = seeing.begin / size * size;
  int group = int(shape.group());
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
  auto of_thread = [&](int at, int head) {
    int64_t row = at + int64_t(threadIdx.x);
    return MmaQuery::of(gradient, first_row + head + row * shape.heads, int(threadIdx.x) < size && row < count);
  };
  auto keep = [&](MmaQuery of, int stage) {
    if (int(threadIdx.x) < size)
      log2_sums[stage * size + threadIdx.x] = of.log2_sum, dots[stage * size + threadIdx.x] = of.dot;
  };
  MmaRows<m, columns / 2> dk, dv;
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
  int at = 0, stage = 0, head = 0;
#pragma unroll 1
  while (head < group && end > 0) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile is there, and all have done with the one before
    int next = at + size, next_head = head;
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
    if (is_seen.any(at)) {
      uint32_t now = of_queries + stage * 2 * Queries::bytes;
      int first_query = half_of_pair * own;
      uint32_t of_own = first_query * Queries::pitch, of_other = own * Queries::pitch - of_own;
      auto each_pair = [&](const float* of, auto&& change) {
#pragma unroll
        for (int j = 0; j < own / 8; ++j)
          change(j, *reinterpret_cast<const float2*>(of + first_query + mma_column(j, 0)));
      };
      MmaRows<m, own> s, ds;
      s.clear();
      each_pair(dots + stage * size, [&](int j, float2 dot) {
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e) ds.part[i][j][e] = e % 2 ? -dot.y : -dot.x;
      });
      s.template add_product<steps, Keys, Queries>(of_k + left, now + of_own + Queries::as_right());
      ds.template add_product<steps, Keys, Queries>(of_v + left, now + of_own + Queries::bytes + Queries::as_right());
      MmaScores<T, plain> score(work, block, kv_head * group + head, begin + at, keys.begin);
      each_pair(log2_sums + stage * size, [&](int j, float2 log2_sum) {
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            differentiate(score, e % 2 ? log2_sum.y : log2_sum.x, first_query + mma_column(j, e),
                          mma_row(first + mma_rows * i, e / 2), s.part[i][j][e], ds.part[i][j][e]);
      });
      if (!is_seen.all(at, size)) {
        // A key sees the queries from -right to left from its own on.
        MmaBand band(at - distance, work.right, work.left, count - at);
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            int row = mma_row(first + mma_rows * i, half);
            s.each(i, half, [&](float& x, int column) { x = band(row, first_query + column) ? x : 0.f; });
            ds.each(i, half, [&](float& x, int column) { x = band(row, first_query + column) ? x : 0.f; });
          }
      }
      constexpr int fragments = own / 16;
      constexpr int from_step = columns / 32;
      MmaLeft<m, fragments> weights, slopes;
      uint4* of_warp = exchanged + (threadIdx.x / 32) * 2 * fragments * m * 32 + threadIdx.x % 32;
#pragma unroll
      for (int k = 0; k < fragments; ++k)
#pragma unroll
        for (int i = 0; i < m; ++i) {
          uint4* at = of_warp + (k * m + i) * 64;
          s.template round<T>(weights.part[k][i], i, k);
          at[0] = as_vector(weights.part[k][i]);
          ds.template round<T>(slopes.part[k][i], i, k);
          at[32] = as_vector(slopes.part[k][i]);
        }
      int from = half_of_pair * from_step;
      auto add = [&](uint32_t rows) {
        dv.template add_product_of_rows<Queries>(weights, now + rows + Queries::bytes + Queries::as_left(), from);
        dk.template add_product_of_rows<Queries>(slopes, now + rows + Queries::as_left(), from);
      };
      add(of_own);
      wait_for_pair(threadIdx.x / 64);
      const uint4* of_other_warp = exchanged + (threadIdx.x / 32 ^ 1) * 2 * fragments * m * 32 + threadIdx.x % 32;
#pragma unroll
      for (int k = 0; k < fragments; ++k)
#pragma unroll
        for (int i = 0; i < m; ++i) {
          const uint4* at = of_other_warp + (k * m + i) * 64;
          from_vector(weights.part[k][i], at[0]);
          from_vector(slopes.part[k][i], at[32]);
        }
      add(of_other);
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
  __syncthreads();  // the tiles of keys and values are read no more
  int chunk = half_of_pair * (columns / 2 / Keys::chunk);
  dk.write(k, first, gradient.dk + k_row * shape.d, shape.kv_heads * shape.d, rows, d, chunk);
  dv.write(v, first, gradient.dv + k_row * shape.values, shape.kv_heads * shape.values, rows, values, chunk);
}

template <class T, int columns, bool plain, class Sizes>
Status varlen_mma_pairs_of(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  constexpr int of_rows = 4 * Sizes::others * int(sizeof(float));
  constexpr int bytes = (2 * Sizes::rows + 4 * Sizes::others) * mma_pitch(columns) * int(sizeof(T)) + of_rows +
                        Sizes::threads * Sizes::others * int(sizeof(T));
  return launch_mma(executor, varlen_mma_pairs<T, columns, plain, Sizes>, work, true, Sizes::rows, Sizes::threads,
                    bytes, gradient);
}

}  // namespace internal
}  // namespace baracuda
