// Both axes of twice the size, of taps that neighbors have in common: down a strip, sums of the columns of a row of x
// first, which are kept for the rows of y that have it.
#pragma once

#include "resample_steps_cuda.h"

namespace baracuda {
namespace internal {

// V neighbors along a row of y of twice the size, of K taps, which are in `own` neighbors of x and in `lead` on both
// sides. Of these a lane has the words that the lanes next to it read.
template <int K, int V, class Sum, class T>
struct TwiceColumns {
  static constexpr int own = V / 2, lead = K / 2, words = own * int(sizeof(T)) / 4;
  static constexpr int leading = (lead * int(sizeof(T)) + 3) / 4, lanes = leading * 4 / int(sizeof(T));
  int first;
  uint32_t mask_before, mask_after;
  Sum weight[V][K];

  __device__ TwiceColumns(const Taps<Sum>& axis, int column) : first(column / 2) {
    bool has_before = first > 0, has_after = first + own < int(axis.in);
    mask_before = -uint32_t(has_before), mask_after = -uint32_t(has_after);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Vector<Sum, V> loaded = load<V>(axis.weight + k * axis.out + column);
#pragma unroll
      for (int v = 0; v < V; ++v) weight[v][k] = loaded.lane[v];
    }
    if (!has_before || !has_after) move_taps<K, V>(axis, column, begin, weight);
  }
  static __device__ int begin(int o) { return (o + 1) / 2 - lead; }
  __device__ void sum(const Words<T, own>& read, Sum (&total)[V]) const {
    Words<T, lanes> before, after;
#pragma unroll
    for (int i = 0; i < leading; ++i) {
      before.words.lane[i] = __shfl_up_sync(~0u, read.words.lane[words - leading + i], 1) & mask_before;
      after.words.lane[i] = __shfl_down_sync(~0u, read.words.lane[i], 1) & mask_after;
    }
    Sum values[lead + own + lead];
#pragma unroll
    for (int i = 0; i < own; ++i) values[lead + i] = Sum(read.lane(i));
#pragma unroll
    for (int i = 0; i < lead; ++i)
      values[i] = Sum(before.lane(lanes - lead + i)), values[lead + own + i] = Sum(after.lane(i));
#pragma unroll
    for (int v = 0; v < V; ++v) {
      total[v] = weight[v][0] * values[(v + 1) / 2];
#pragma unroll
      for (int k = 1; k < K; ++k) total[v] = fma(weight[v][k], values[(v + 1) / 2 + k], total[v]);
    }
  }
};

// A step is a pair of rows of y, 2 j - 1 and 2 j, which have the same K rows of x, the last of which is read then.
inline constexpr int longest_twice = 14, twice_ahead = 4;

template <int K, int V, class Sum, class T, class U>
__global__ void __launch_bounds__(scaled_block, sizeof(Sum) == 8 ? 2 : 5)
    resample_twice(ResamplePlane<Sum> shape, ScaledGrid grid, const T* __restrict__ x, U* __restrict__ y) {
  using Columns = TwiceColumns<K, V, Sum, T>;
  using Read = Words<T, Columns::own>;
  constexpr int ahead = twice_ahead, together = scaled_together<ahead, K>;
  static_assert(together % ahead == 0 && together % K == 0);
  __shared__ Vector<Sum, K> weights[longest_twice][2];
  ScaledLane lane(grid);
  int out = int(shape.rows.out), height = int(shape.rows.in), width = int(shape.columns.in);
  int top = lane.first, pairs = min(grid.steps, height + 1 - top), steps = pairs + K - 1, column = lane.unit * V;
#pragma unroll 1
  for (int i = threadIdx.x; i < pairs * 2 * K; i += scaled_block) {
    int o = 2 * top - 1 + i / K;
    weights[i / K / 2][i / K % 2].lane[i % K] = scaled_weight(shape.rows, o, i % K, Columns::begin(o));
  }
  Columns columns(shape.columns, column);
  int row = top - K / 2, out_width = int(shape.columns.out), o = 2 * top - 1;
  ScaledRows<Read, T> rows{x + (lane.outer * height * width + columns.first), row, min(height, row + steps), width};
  U* to = y + (int64_t(lane.outer) * out + o) * out_width + column;
  Read next[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) next[i] = rows.next();
  __syncthreads();
  Sum sums[K][V];
#pragma unroll 1
  for (int step = 0; step < steps; step += together) {
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (step + i >= steps) break;
      columns.sum(next[i % ahead], sums[i % K]);
      next[i % ahead] = rows.next();
      if (step + i < K - 1) continue;
#pragma unroll
      for (int r = 0; r < 2; ++r, ++o, to += out_width) {
        Vector<Sum, K> weight = weights[step + i - (K - 1)][r];
        Vector<U, V> result;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          Sum total = weight.lane[0] * sums[(i + 1) % K][v];
#pragma unroll
          for (int k = 1; k < K; ++k) total = fma(weight.lane[k], sums[(i + 1 + k) % K][v], total);
          result.lane[v] = U(total);
        }
        if (lane.is_written && unsigned(o) < unsigned(out)) store<V>(to, result);
      }
    }
  }
}

}  // namespace internal
}  // namespace baracuda
