// The elementwise pattern on a CUDA grid: a thread for V neighbouring elements of the results, 16 bytes of the widest
// array.
#pragma once

#include "divisor.h"
#include "elementwise.h"

namespace baracuda {
namespace internal {

inline constexpr int elementwise_block = 256;

// The shape as threads see it; the last dimension is counted in groups of V. One dimension needs no division.
template <class Index, int operands>
struct ElementwiseGrid {
  int rank;
  Index elements;
  Divisor<Index> groups[elementwise_rank];
  Index step[operands][elementwise_rank];
  bool repeats[operands];

  ElementwiseGrid(const ElementwiseShape<operands>& shape, int V)
      : rank(shape.rank), elements(Index(shape.elements())) {
    for (int d = 0; d < rank; ++d) {
      bool last = d == rank - 1;
      groups[d] = Divisor<Index>(last ? ceil_div(shape.extent[d], V) : shape.extent[d]);
      for (int i = 0; i < operands; ++i) step[i][d] = Index(shape.step[i][d] * (last ? V : 1));
    }
    for (int i = 0; i < operands; ++i) repeats[i] = shape.step[i][rank - 1] == 0;
  }
};

template <int V, class Index, class Functor>
__global__ void __launch_bounds__(elementwise_block)
    elementwise_groups(Elementwise<Functor> work, ElementwiseGrid<Index, Elementwise<Functor>::operands> grid) {
  constexpr int operands = Elementwise<Functor>::operands;
  int64_t group = int64_t(blockIdx.x) * elementwise_block + threadIdx.x;
  if (group * V >= grid.elements) return;
  Index to = Index(group * V), rest = Index(group);
  Index from[operands];
  bool step[operands];
#pragma unroll
  for (int i = 0; i < operands; ++i) from[i] = 0, step[i] = !grid.repeats[i];
  for (int d = grid.rank - 1; d >= 0; --d) {
    Index place = rest;
    if (d > 0) {
      rest = grid.groups[d].quotient(rest);
      place -= rest * grid.groups[d].value;
    }
#pragma unroll
    for (int i = 0; i < operands; ++i) from[i] += place * grid.step[i][d];
  }
  if (to + V <= grid.elements) return work.template run<V>(to, from, step);
  // The end of a single row.
  for (; to < grid.elements; ++to) {
    work.template run<1>(to, from, step);
    for (int i = 0; i < operands; ++i) from[i] += step[i];
  }
}

template <int V, class Index, class Functor>
Status elementwise_by(const Executor& executor, const Elementwise<Functor>& work,
                      const ElementwiseShape<Elementwise<Functor>::operands>& shape) {
  ElementwiseGrid<Index, Elementwise<Functor>::operands> grid(shape, V);
  unsigned blocks = unsigned(ceil_div(ceil_div(shape.elements(), V), elementwise_block));
  elementwise_groups<V><<<blocks, elementwise_block, 0, executor.stream>>>(work, grid);
  return launched();
}

template <class Functor>
bool elementwise_aligned(const Elementwise<Functor>& work) {
  uintptr_t bits = 0;
  for (const void* array : work.in) bits |= reinterpret_cast<uintptr_t>(array);
  for (void* array : work.out) bits |= reinterpret_cast<uintptr_t>(array);
  return bits % 16 == 0;
}

}  // namespace internal

template <class Functor>
Status elementwise(const Executor& executor, const Elementwise<Functor>& work,
                   const ElementwiseShape<Elementwise<Functor>::operands>& shape) {
  constexpr int V = 16 / Elementwise<Functor>::bytes;
  constexpr int64_t reach = (int64_t(1) << 31) - V * internal::elementwise_block;
  int64_t elements = shape.elements();
  if (elements == 0) return {};
  // No vector crosses the end of a row, so with several all of them begin at multiples of V.
  bool vectors = internal::elementwise_aligned(work) && (shape.rank == 1 || shape.columns() % V == 0);
  if (elements >= reach)
    return vectors ? internal::elementwise_by<V, int64_t>(executor, work, shape)
                   : internal::elementwise_by<1, int64_t>(executor, work, shape);
  return vectors ? internal::elementwise_by<V, int32_t>(executor, work, shape)
                 : internal::elementwise_by<1, int32_t>(executor, work, shape);
}

}  // namespace baracuda
