// The first few elements of a short row's order, a warp for each row: the first of all, as many times as are asked for.
#pragma once

#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t most_top_of_warp = 8, most_elements_of_warp = 1024;
inline constexpr int top_warps = 4;

__device__ inline uint32_t least_of_warp(uint32_t key) { return __reduce_min_sync(~0u, key); }
__device__ inline uint64_t least_of_warp(uint64_t key) {
  uint32_t high = least_of_warp(uint32_t(key >> 32));
  return uint64_t(high) << 32 | least_of_warp(uint32_t(key >> 32) == high ? uint32_t(key) : ~0u);
}

// Of rows of at most 128: each lane sorts its own four, and then has to show but the first that is left. Each element
// that is found waits in a lane, which writes it in the end with its neighbors.
template <class Key>
__global__ void __launch_bounds__(32 * top_warps) find_top_of_shortest(Rows<Key> rows, FirstElements<Key> out) {
  using Wide = std::conditional_t<sizeof(Key) == 8, uint64_t, uint32_t>;
  constexpr int items = 4;
  constexpr uint32_t none = ~0u;
  int lane = threadIdx.x % 32;
  int64_t step = int64_t(gridDim.x) * top_warps;
  for (int64_t row = int64_t(blockIdx.x) * top_warps + threadIdx.x / 32; row < rows.rows; row += step) {
    auto elements = rows.row(row);
    Wide keys[items];
    uint32_t positions[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      int64_t i = k * 32 + lane;
      keys[k] = ~Wide(0), positions[k] = none;
      if (i < rows.count) keys[k] = elements.key(i), positions[k] = uint32_t(i);
    }
    auto order = [&](int a, int b) {
      bool swaps = keys[b] < keys[a] || (keys[b] == keys[a] && positions[b] < positions[a]);
      Wide key = keys[a];
      uint32_t position = positions[a];
      keys[a] = swaps ? keys[b] : key, keys[b] = swaps ? key : keys[b];
      positions[a] = swaps ? positions[b] : position, positions[b] = swaps ? position : positions[b];
    };
    order(0, 1), order(2, 3), order(0, 2), order(1, 3), order(1, 2);
    uint32_t mine = none;
    for (int item = 0; item < int(out.items); ++item) {
      Wide best = least_of_warp(keys[0]);
      uint32_t at = least_of_warp(keys[0] == best ? positions[0] : none);
      if (lane == item) mine = at;
      bool is_mine = at == positions[0];
#pragma unroll
      for (int k = 0; k < items; ++k) {
        keys[k] = !is_mine ? keys[k] : k + 1 < items ? keys[k + 1 < items ? k + 1 : k] : ~Wide(0);
        positions[k] = !is_mine ? positions[k] : k + 1 < items ? positions[k + 1 < items ? k + 1 : k] : none;
      }
    }
    if (lane < int(out.items)) out.write(row, lane, rows.x[row * rows.count + mine], mine);
  }
}

template <int items, class Key>
__global__ void __launch_bounds__(32 * top_warps) find_top_of_short(Rows<Key> rows, FirstElements<Key> out) {
  using Wide = std::conditional_t<sizeof(Key) == 8, uint64_t, uint32_t>;
  int lane = threadIdx.x % 32;
  int64_t step = int64_t(gridDim.x) * top_warps;
  for (int64_t row = int64_t(blockIdx.x) * top_warps + threadIdx.x / 32; row < rows.rows; row += step) {
    auto elements = rows.row(row);
    Key keys[items];
    uint32_t left = 0;  // a bit for each element that was not first yet
#pragma unroll
    for (int k = 0; k < items; ++k)
      if (int64_t i = k * 32 + lane; i < rows.count) keys[k] = elements.key(i), left |= 1u << k;
    for (int64_t item = 0; item < out.items; ++item) {
      Wide first = ~Wide(0);
      uint32_t position = ~0u;
#pragma unroll
      for (int k = 0; k < items; ++k)
        if (left >> k & 1 && (position == ~0u || keys[k] < first)) first = keys[k], position = k * 32 + lane;
      Wide best = least_of_warp(first);
      uint32_t at = least_of_warp(first == best ? position : ~0u);
      if (at == position) {
        left ^= 1u << (at / 32);
        out.write(row, item, rows.x[row * rows.count + at], at);
      }
    }
  }
}

template <class Key>
Status top_of_short_rows(Executor executor, const Rows<Key>& rows, const FirstElements<Key>& out) {
  unsigned blocks = grid_of(ceil_div(rows.rows, top_warps));
  if (rows.count <= 128)
    find_top_of_shortest<<<blocks, 32 * top_warps, 0, executor.stream>>>(rows, out);
  else if (rows.count <= 256)
    find_top_of_short<8><<<blocks, 32 * top_warps, 0, executor.stream>>>(rows, out);
  else
    find_top_of_short<32><<<blocks, 32 * top_warps, 0, executor.stream>>>(rows, out);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
