// A few rows of middle length in order, each by many blocks: a key's rank is how many keys are smaller, and how many of
// those before it are equal. That is a comparison for each pair of elements, of which a GPU makes some millions while a
// block alone sorts a row.
#pragma once

#include "early_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int rank_warps = 16, rank_tile = 2048;  // keys that are in shared memory at a time
inline constexpr int64_t most_pairs_ranked = 1 << 25, most_elements_ranked = 1 << 13;  // of all rows

// A block has the ranks of 32 elements, an element to a lane, each warp among some of the keys.
template <class Key, class Output>
__global__ void __launch_bounds__(32 * rank_warps) sort_rows_by_ranks(Rows<Key> rows, Output out) {
  constexpr int threads = 32 * rank_warps, of_warp = rank_tile / rank_warps, V = 16 / sizeof(Key);
  __shared__ Vector<Key, V> keys[rank_tile / V];
  __shared__ uint32_t counts[rank_warps][32];
  wait_for_kernel_before();
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = int(rows.count);
  int first_own = int(blockIdx.x) * 32, i = first_own + lane;
  auto row = rows.row(blockIdx.y);
  Key own = i < count ? row.key(i) : Key(0);
  uint32_t rank = 0;
  constexpr int each = rank_tile / threads;
  Key next[each];  // of the next tile, on their way
  auto read = [&](int begin) {
#pragma unroll
    for (int k = 0; k < each; ++k)
      if (int at = begin + k * threads + int(threadIdx.x); at < count) next[k] = row.key(at);
  };
  read(0);
  for (int begin = 0; begin < count; begin += rank_tile) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < each; ++k) {
      int at = k * threads + int(threadIdx.x);
      keys[at / V].lane[at % V] = next[k];
    }
    __syncthreads();
    read(begin + rank_tile);
    int first = warp * of_warp, last = min(first + of_warp, count - begin);
    auto add = [&](int from, int to, const auto& is_before) {
#pragma unroll 4
      for (int k = from; k < to; k += V) {
        Vector<Key, V> some = keys[k / V];
#pragma unroll
        for (int v = 0; v < V; ++v) rank += is_before(some.lane[v]);
      }
    };
    // Whole vectors of earlier elements; those around the own ones, and at the end, one by one; later ones.
    int before = min(max(first_own - begin, first), last), after = min(max(first_own + 32 - begin, first), last);
    int whole = after + max(last - after, 0) / V * V;
    add(first, before, [&](Key key) { return key <= own; });
    for (int k = before; k < after; ++k) {
      Key key = keys[k / V].lane[k % V];
      rank += key < own || (key == own && begin + k < i);
    }
    add(after, whole, [&](Key key) { return key < own; });
    for (int k = max(whole, after); k < last; ++k) rank += keys[k / V].lane[k % V] < own;
  }
  next_may_begin();
  counts[warp][lane] = rank;
  __syncthreads();
  if (warp != 0 || i >= count) return;
  rank = 0;
#pragma unroll
  for (int w = 0; w < rank_warps; ++w) rank += counts[w][lane];
  if (rank < out.items) out.write(blockIdx.y, rank, row.x[i], i);
}

template <class Key>
bool may_be_ranked(const Rows<Key>& rows) {
  int64_t elements = rows.rows * rows.count;
  return elements <= most_elements_ranked && elements * rows.count <= most_pairs_ranked;
}

template <class Key, class Output>
Status sort_few_rows(Executor executor, const Rows<Key>& rows, const Output& out) {
  dim3 blocks(unsigned(ceil_div(rows.count, 32)), unsigned(rows.rows));
  return launch_early(executor, sort_rows_by_ranks<Key, Output>, blocks, 32 * rank_warps, 0, rows, out);
}

}  // namespace internal
}  // namespace baracuda
