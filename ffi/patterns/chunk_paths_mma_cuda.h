// Sums over a chunk's positions on tensor cores, for gradients of steps: a decay between positions scales what all
// pairs around it give each other. Pairs are in blocks of 16 x 16, as in ChunkCb. They are summed without differences,
// so that a NaN of one pair is not seen by others.
#pragma once

#include "chunk_cb_mma_cuda.h"

namespace baracuda {
namespace internal {

// What teams find of a head's positions.
struct PositionSums {
  static constexpr int side = chunk_side, strips = 2;
  float of_from[1][side], of_to[strips][side], of_x[strips][side], of_kept[unit_warps];
  // Of what pairs of positions give for the decays between them: sums over those before in other blocks of 16
  // positions; of each warp that has pairs of two blocks, over those after; and all within a block.
  float of_row[side], of_column[unit_warps - 1][side], of_block[side], of_path[side];
};

// Sums over the lanes that have the same columns of n parts of a product: a lane gets column_of_sum.
template <int n>
__device__ float sum_of_columns(float (&value)[n]) {
  int distance = 16;
#pragma unroll
  for (int left = n; left > 1; left /= 2, distance /= 2) {
    const bool is_second = threadIdx.x & distance;
#pragma unroll
    for (int k = 0; k < left / 2; ++k) {
      const float own = is_second ? value[k + left / 2] : value[k], other = is_second ? value[k] : value[k + left / 2];
      value[k] = own + __shfl_xor_sync(~0u, other, distance);
    }
  }
#pragma unroll
  for (; distance >= 4; distance /= 2) value[0] += __shfl_xor_sync(~0u, value[0], distance);
  return value[0];
}
// Of values [2 t + e] of the parts t; of each column one lane, or two.
template <int n>
__device__ int column_of_sum() {
  static_assert(n == 4 || n == 8);
  const int which = int(threadIdx.x) % 32 / (n == 8 ? 4 : 8);
  return mma_column(which / 2, which % 2);
}

// Of a block of 16 x 16 on the diagonal, in place of each element [i][k] with k <= i the sum of those before k.
__device__ inline void sum_within_block(float (&path)[2][2][2]) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float before[2], all = 0;
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      float sum = path[half][t][0] + path[half][t][1];
#pragma unroll
      for (int distance = 1; distance < 4; distance *= 2) {
        const float other = __shfl_up_sync(~0u, sum, distance, 4);
        if (lane >= distance) sum = other + sum;
      }
      before[t] = __shfl_up_sync(~0u, sum, 1, 4);
      before[t] = lane > 0 ? all + before[t] : all;
      if (t == 0) all = __shfl_sync(~0u, sum, 3, 4);
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const int i = mma_row(0, half), k = mma_column(t, 0);
      const float first = path[half][t][0];
      path[half][t][0] = k <= i ? before[t] : 0.f;
      path[half][t][1] = k < i ? before[t] + first : 0.f;
    }
  }
}

// Those that end at k of all pairs of positions are summed: of_path[k] = sum over i and j with j < k <= i. By one warp.
__device__ inline void sum_paths(PositionSums& sums) {
  const int lane = threadIdx.x % 32, p = 2 * lane, block = p / mma_rows;
  const float2 row = *reinterpret_cast<const float2*>(sums.of_row + p);
  float2 path = *reinterpret_cast<const float2*>(sums.of_block + p);
  constexpr int lanes = mma_rows / 2;
  float after = row.x + row.y;
#pragma unroll
  for (int distance = 1; distance < lanes; distance *= 2) {
    const float other = __shfl_down_sync(~0u, after, distance, lanes);
    if (lane % lanes + distance < lanes) after += other;
  }
  const float others = __shfl_down_sync(~0u, after, 1, lanes);
  const float from_second = lane % lanes + 1 < lanes ? row.y + others : row.y;
  path.x += row.x + from_second, path.y += from_second;
#pragma unroll
  for (int w = 0; w < unit_warps - 1; ++w) {
    const float2 column = *reinterpret_cast<const float2*>(sums.of_column[w] + p);
    float sum = column.x + column.y;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const float other = __shfl_up_sync(~0u, sum, distance);
      if (lane >= distance) sum = other + sum;
    }
    float before = __shfl_up_sync(~0u, sum, 1);
    if (lane == 0) before = 0;
    if (block < unit_warps - 1 - w) path.x += before, path.y += before + column.x;
  }
  *reinterpret_cast<float2*>(sums.of_path + p) = path;
}

}  // namespace internal
}  // namespace baracuda
