// The sampled dot products pattern on a CUDA grid: a group of lanes, a power of two, has a dot product, each lane V
// neighboring columns at a time. Groups that are neighbors have the heads of an entry, which are neighbors in memory.
#pragma once

#include "sampled_dot.h"

namespace baracuda {
namespace internal {

inline constexpr int dot_block = 256;

template <int V, class T>
__global__ void __launch_bounds__(dot_block) sampled_dots(SampledDot<T> work, int log_lanes) {
  using Sum = typename SampledDot<T>::Sum;
  int lanes = 1 << log_lanes;
  int64_t dot = (int64_t(blockIdx.x) * dot_block + threadIdx.x) >> log_lanes;
  bool in_range = dot < work.shape.dots();
  Sum sums[V] = {};
  const T *x = nullptr, *y = nullptr;
  if (in_range) work.operands(dot, x, y);
  if (x != nullptr)
    for (int64_t column = int(threadIdx.x & (lanes - 1)) * V; column < work.shape.width; column += lanes * V) {
      Vector<T, V> a = load<V>(x + column), b = load<V>(y + column);
#pragma unroll
      for (int k = 0; k < V; ++k) sums[k] += Sum(a.lane[k]) * Sum(b.lane[k]);
    }
  Sum total = sums[0];
#pragma unroll
  for (int k = 1; k < V; ++k) total += sums[k];
  for (int step = lanes / 2; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (in_range && (threadIdx.x & (lanes - 1)) == 0) work.out[dot] = total;
}

template <int V, class T>
Status sampled_dot_by(const Executor& executor, const SampledDot<T>& work) {
  int log_lanes = 0;
  while (log_lanes < 5 && (V << log_lanes) < work.shape.width) ++log_lanes;
  int64_t blocks = ceil_div(work.shape.dots(), dot_block >> log_lanes);
  sampled_dots<V><<<unsigned(blocks), dot_block, 0, executor.stream>>>(work, log_lanes);
  return launched();
}

}  // namespace internal

template <class T>
Status sampled_dot(const Executor& executor, const SampledDot<T>& work) {
  if (work.shape.dots() == 0) return {};
  constexpr int V = 16 / sizeof(T);
  if (work.shape.width % V == 0) return internal::sampled_dot_by<V>(executor, work);
  return internal::sampled_dot_by<1>(executor, work);
}

}  // namespace baracuda
