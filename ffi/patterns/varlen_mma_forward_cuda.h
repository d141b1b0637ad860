// y and lse of the varlen pattern on tensor cores, for half precisions. A block has a tile of queries in shared memory,
// some rows of a warp, and goes through tiles of keys and values, of which the next ones are copied while it computes.
// What is summed stays in registers.
#pragma once

#include "varlen_mma_block_cuda.h"

namespace baracuda {
namespace internal {

// How many times 16 queries a warp has, keys a tile, warps a block and blocks a multiprocessor; and whether queries
// stay in registers.
template <int m_, int keys_, int warps_, int blocks_, bool keeps_ = false>
struct MmaForwardSizes {
  static constexpr int m = m_, keys = keys_, warps = warps_, blocks = blocks_;
  static constexpr bool keeps = keeps_;
  static constexpr int threads = 32 * warps, queries = m * mma_rows * warps;
};

template <class T, int columns, bool plain, bool listed, class Sizes>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    varlen_mma(Varlen<T> work, int64_t tiles, T* y, float* lse) {
  constexpr int m = Sizes::m, size = Sizes::keys, steps = columns / 16;
  using Queries = MmaTile<T, mma_pitch(columns), Sizes::queries>;
  using Keys = MmaTile<T, mma_pitch(columns), size>;
  extern __shared__ __align__(1024) unsigned char shared[];
  const VarlenShape& shape = work.shape;
  MmaBlock block = mma_block_of(work, tiles, Sizes::queries, false);
  if (block.tile.begin >= block.tile.end) return;
  Queries q{reinterpret_cast<T*>(shared)};
  uint32_t of_q = shared_address(shared), of_keys = of_q + Queries::bytes;  // keys, values, and the next ones
  KeyRange queries{block.tile.begin, block.tile.end};
  int64_t kv_head = block.head / shape.group(),
          y_row = work.query_row(block.batch, block.of, queries.begin, block.head);
  int d = int(shape.d), values = int(shape.values), first = int(threadIdx.x) / 32 * m * mma_rows;
  int rows = int(queries.end - queries.begin), seeing = int(min(queries.end, block.of.queries) - queries.begin);
  KeyRange seen = work.keys_of(block.of, queries);
  int64_t begin = seen.begin / size * size, first_row = work.key_row(block.batch, block.of, begin, kv_head);
  int end = int(max(seen.end - begin, int64_t(0))), count = int(block.of.keys - begin);

  auto keys_of = [&](int from, int to) {  // rows, of which those are left out that see nothing
    return work.keys_of(block.of, {queries.begin + from, queries.begin + min(to, seeing)});
  };
  int last = min(first + m * mma_rows, seeing) - 1;
  MmaSeen is_seen(begin, keys_of(first, last + 1), keys_of(first, first + 1), keys_of(last, last + 1));
  MmaSource<Keys, Sizes::threads> from_k(work.k + first_row * shape.d, shape.kv_heads * shape.d, d);
  MmaSource<Keys, Sizes::threads> from_v(work.v + first_row * shape.values, shape.kv_heads * shape.values, values);
  int64_t distance = begin - queries.begin - block.of.shift;
  uint32_t stage = 0;
  // Of listed keys the positions too, of a tile and of the next one.
  auto* positions = reinterpret_cast<int*>(shared + Queries::bytes + 4 * Keys::bytes);
  auto read = [&](int at, uint32_t to) {
    from_k.read(of_keys + to, count - at);
    from_v.read(of_keys + to + Keys::bytes, count - at);
    if constexpr (listed)
      if (int i = int(threadIdx.x); i < size)
        copy_async_word(positions + (to == 0 ? 0 : size) + i, block.of.positions + begin + at + i, at + i < count);
    __pipeline_commit();
  };
  if (end > 0) {
    MmaSource<Queries, Sizes::threads> from_q(work.q + y_row * shape.d, shape.heads * shape.d, d);
    from_q.read(of_q, rows);
    read(0, 0);
  }
  uint32_t left = of_q + first * Queries::pitch + Queries::as_left();
  float factor = plain ? work.score.factor : 1.f;
  MmaState state[m][2];
  MmaRows<m, columns> sums;
  sums.clear();
  MmaLeft<m, Sizes::keeps ? steps : 1> kept;
#pragma unroll 1
  for (int at = 0; at < end; at += size) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile is there, and all have done with the one before
    if (at + size < end) read(at + size, stage ^ (2 * Keys::bytes));
    uint32_t now = of_keys + stage;
    auto band_of_tile = [&] {
      return MmaBand(distance + at, work.left, work.right, listed ? MmaBand::most : count - at);
    };
    MmaColumns<listed> column_of{positions + (stage == 0 ? 0 : size), begin + at, count - at};
    stage ^= 2 * Keys::bytes;
    if constexpr (Sizes::keeps)
      if (at == 0) kept.template load<Queries>(left);
    bool all = is_seen.all(at, size), any = is_seen.any(at);
    if constexpr (listed) column_of.template seen<size>(band_of_tile(), first, last, any, all);
    if (!any) continue;
    MmaRows<m, size> s;
    s.clear();
    if constexpr (Sizes::keeps)
      s.template add_product<Keys>(kept, now + Keys::as_right());
    else
      s.template add_product<steps, Queries, Keys>(left, now + Keys::as_right());
    if constexpr (!plain) {
      MmaScores<T, plain> score(work, block, block.head, queries.begin, begin + at);
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = mma_row(first + mma_rows * i, half);
          s.each(i, half, [&](float& x, int column) { x = score(x, row, column_of(column)); });
        }
    }
    if (!all) {
      MmaBand band = band_of_tile();
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = mma_row(first + mma_rows * i, half);
          s.each(i, half, [&](float& x, int column) { x = band(row, column_of(column)) ? x : MmaState::nothing; });
        }
    }
    float top[m][2];
    bool grows = false;
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float& largest = top[i][half] = MmaState::nothing;
        s.each(i, half, [&](float& x, int) { largest = fmaxf(largest, x); });
        grows = grows || largest > state[i][half].limit;
      }
    if (__any_sync(~0u, grows)) {
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float largest = top[i][half];
          largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
          largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
          float scale = state[i][half].grow(largest, factor);
          sums.each(i, half, [&](float& x, int) { x *= scale; });
        }
    }
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        MmaState& of = state[i][half];
        float sum = 0;
        s.each(i, half, [&](float& x, int) { sum += x = fast_power_of_two(fmaf(x, factor, -of.offset)); });
        of.total += sum;
      }
    sums.template add_product_of_rows<Keys>(s, now + Keys::bytes + Keys::as_left());
  }

#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = sum_of_row(state[i][half].total);
      int row = mma_row(first + mma_rows * i, half);
      SoftmaxState<float> of{state[i][half].offset, row < seeing ? sum : 0.f};
      float scale = of.is_empty() ? 0.f : 1 / of.total;
      sums.each(i, half, [&](float& x, int) { x = of.is_empty() ? 0.f : x * scale; });
      if (threadIdx.x % 4 == 0 && row < rows) lse[y_row + row * shape.heads] = of.log_sum_exp();
    }
  sums.write(q, first, y + y_row * shape.values, shape.heads * shape.values, rows, values);
}

template <class T, int columns, bool plain, bool listed, class Sizes>
Status varlen_mma_of(const Executor& executor, const Varlen<T>& work, T* y, float* lse) {
  constexpr int of_positions = listed ? 2 * Sizes::keys * int(sizeof(int)) : 0;
  constexpr int bytes = (Sizes::queries + 4 * Sizes::keys) * mma_pitch(columns) * int(sizeof(T)) + of_positions;
  return launch_mma(executor, varlen_mma<T, columns, plain, listed, Sizes>, work, false, Sizes::queries, Sizes::threads,
                    bytes, y, lse);
}

}  // namespace internal
}  // namespace baracuda
