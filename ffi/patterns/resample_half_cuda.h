// Both axes of half the size, of taps that neighbors have in common: down a strip, sums of rows of x first, then of the
// columns of these.
#pragma once

#include "resample_steps_cuda.h"

namespace baracuda {
namespace internal {

// V neighbors along a row of y of half the size, of K taps, which are in `own` neighbors of x and in `lead` on both
// sides.
template <int K, int V, class Sum>
struct HalfColumns {
  static constexpr int own = 2 * V, lead = K / 2 - 1;
  int first;                        // of own
  int64_t mask_before, mask_after;  // all bits where there are neighbors on a side
  Sum weight[V][K];

  __device__ HalfColumns(const Taps<Sum>& axis, int column) : first(2 * column) {
    bool has_before = first > 0, has_after = first + own < int(axis.in);
    mask_before = -int64_t(has_before), mask_after = -int64_t(has_after);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Vector<Sum, V> loaded = load<V>(axis.weight + k * axis.out + column);
#pragma unroll
      for (int v = 0; v < V; ++v) weight[v][k] = loaded.lane[v];
    }
    if (!has_before || !has_after) move_taps<K, V>(axis, column, begin, weight);
  }
  // The taps of element o begin here. Those outside of x weigh nothing.
  static __device__ int begin(int o) { return 2 * o - lead; }
  // By all lanes of a warp, each of which has the sums of its own columns.
  __device__ void sum(const Sum (&down)[own], Sum (&total)[V]) const {
    // By masks: of conditions nvcc makes branches, each with its own shuffles.
    using Bits = std::conditional_t<sizeof(Sum) == 8, uint64_t, uint32_t>;
    Sum values[lead + own + lead];
#pragma unroll
    for (int i = 0; i < own; ++i) values[lead + i] = down[i];
#pragma unroll
    for (int i = 0; i < lead; ++i) {
      Sum before = __shfl_up_sync(~0u, down[own - lead + i], 1), after = __shfl_down_sync(~0u, down[i], 1);
      values[i] = bit_cast<Sum>(Bits(bit_cast<Bits>(before) & Bits(mask_before)));
      values[lead + own + i] = bit_cast<Sum>(Bits(bit_cast<Bits>(after) & Bits(mask_after)));
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      total[v] = weight[v][0] * values[2 * v];
#pragma unroll
      for (int k = 1; k < K; ++k) total[v] = fma(weight[v][k], values[2 * v + k], total[v]);
    }
  }
};

// A step is a row of y, the last two of whose K rows of x are read then, and added to the K / 2 rows of y that they are
// taps of. Sums of columns go to the lanes next to it.
inline constexpr int longest_half = 56, half_ahead = 4;

template <int K, int V, class Sum, class T, class U>
__global__ void __launch_bounds__(scaled_block, sizeof(Sum) == 8 ? 2 : 4)
    resample_half(ResamplePlane<Sum> shape, ScaledGrid grid, const T* __restrict__ x, U* __restrict__ y) {
  using Columns = HalfColumns<K, V, Sum>;
  using Read = Words<T, Columns::own>;
  constexpr int own = Columns::own, open = K / 2, ahead = half_ahead, together = scaled_together<ahead, open>;
  static_assert(together % ahead == 0 && together % open == 0);
  __shared__ Vector<Sum, K> weights[longest_half + open - 1];
  ScaledLane lane(grid);
  int out = int(shape.rows.out), height = int(shape.rows.in), width = int(shape.columns.in);
  int top = lane.first, steps = min(grid.steps, out - top) + open - 1, column = lane.unit * V;
#pragma unroll 1
  for (int i = threadIdx.x; i < steps * K; i += scaled_block) {
    int o = top - open + 1 + i / K + i % K / 2;
    weights[i / K].lane[i % K] = scaled_weight(shape.rows, o, K - 2 - i % K / 2 * 2 + i % 2, Columns::begin(o));
  }
  Columns columns(shape.columns, column);
  int row = Columns::begin(top);
  ScaledRows<Read, T> rows{x + (lane.outer * height * width + columns.first), row, min(height, row + 2 * steps), width};
  U* to = y + (lane.outer * out + top) * int(shape.columns.out) + column;
  Read next[ahead][2];
#pragma unroll
  for (int i = 0; i < ahead; ++i) next[i][0] = rows.next(), next[i][1] = rows.next();
  __syncthreads();
  Sum sums[open][own] = {};
#pragma unroll 1
  for (int step = 0; step < steps; step += together) {
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (step + i >= steps) break;
      Read &upper = next[i % ahead][0], &lower = next[i % ahead][1];
      Vector<Sum, K> weight = weights[step + i];
#pragma unroll
      for (int n = 0; n < own; ++n) {
        Sum first = Sum(upper.lane(n)), second = Sum(lower.lane(n));
#pragma unroll
        for (int a = 0; a < open; ++a) {
          Sum& sum = sums[(i + a) % open][n];
          sum = a == open - 1 ? weight.lane[2 * a] * first : fma(weight.lane[2 * a], first, sum);
          sum = fma(weight.lane[2 * a + 1], second, sum);
        }
      }
      upper = rows.next(), lower = rows.next();
      if (step + i < open - 1) continue;
      Sum total[V];
      columns.sum(sums[i % open], total);
      Vector<U, V> result;
#pragma unroll
      for (int v = 0; v < V; ++v) result.lane[v] = U(total[v]);
      if (lane.is_written) store<V>(to, result);
      to += int(shape.columns.out);
    }
  }
}

}  // namespace internal
}  // namespace baracuda
