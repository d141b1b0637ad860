// The resample pattern on a CUDA grid, along one axis: a thread has V neighbors of y, which have the same taps.
#pragma once

#include "resample_vectors_cuda.h"

namespace baracuda {
namespace internal {

template <class Index>
struct AxisGrid {
  Divisor<Index> units, out;  // vectors in a row of y, rows
  Index threads;
};

template <int V, class Index, class Sum, class T, class U>
__global__ void __launch_bounds__(resample_block)
    resample_along(ResampleAxis<Sum> shape, AxisGrid<Index> grid, const T* __restrict__ x, U* __restrict__ y) {
  Index thread = Index(blockIdx.x) * resample_block + threadIdx.x;
  if (thread >= grid.threads) return;
  const Taps<Sum>& axis = shape.axis;
  Index row = grid.units.quotient(thread), unit = thread - row * grid.units.value;
  Index outer = grid.out.quotient(row), o = row - outer * grid.out.value;
  const T* from = x + (int64_t(outer) * axis.in + axis.first(o)) * shape.inner + int64_t(unit) * V;
  Sum sums[V];
  Vector<T, V> values = load<V>(from);
  Sum weight = axis.weight_of(o, 0);
#pragma unroll
  for (int v = 0; v < V; ++v) sums[v] = first_tap(weight, Sum(values.lane[v]));
#pragma unroll 4
  for (int k = 1; k < axis.count; ++k) {
    values = load<V>(from + k * shape.inner), weight = axis.weight_of(o, k);
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] = add_tap(sums[v], weight, Sum(values.lane[v]));
  }
  Vector<U, V> result;
#pragma unroll
  for (int v = 0; v < V; ++v) result.lane[v] = U(sums[v]);
  store<V>(y + int64_t(thread) * V, result);
}

template <int V, class Sum, class T, class U>
Status resample_by(const Executor& executor, const ResampleAxis<Sum>& shape, const T* x, U* y) {
  int64_t units = shape.inner / V, threads = shape.outer * shape.axis.out * units;
  unsigned blocks = unsigned(ceil_div(threads, resample_block));
  auto launch = [&](auto type) {
    using Index = decltype(type);
    AxisGrid<Index> grid{Divisor<Index>(units), Divisor<Index>(shape.axis.out), Index(threads)};
    resample_along<V><<<blocks, resample_block, 0, executor.stream>>>(shape, grid, x, y);
    return launched();
  };
  return threads < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace internal
}  // namespace baracuda
