// The concatenate pattern on a CUDA grid: a thread has a few elements of y, far apart, and finds the chunk of each.
#pragma once

#include "concatenate.h"

namespace baracuda {
namespace internal {

inline constexpr int concatenate_block = 256, concatenate_step = 4;

template <bool is_split, class Index, class Element>
__global__ void __launch_bounds__(concatenate_block)
    concatenate_elements(const __grid_constant__ Chunks chunks, Divisor<Index> width, int64_t elements, Index columns,
                         Element* y) {
  int64_t first = int64_t(blockIdx.x) * concatenate_block * concatenate_step + threadIdx.x;
  Element values[concatenate_step];
  Element* to[concatenate_step];
#pragma unroll
  for (int k = 0; k < concatenate_step; ++k) {
    if (first + k * concatenate_block >= elements) continue;
    Index element = Index(first + k * concatenate_block), row = width.quotient(element);
    Index column = Index(chunks.start[0]) + element - row * width.value;
    int i = chunks.of(column);
    Index begin = Index(chunks.start[i]), size = Index(chunks.start[i + 1]) - begin;
    Element* there = y + row * columns + column;
    Element* here = static_cast<Element*>(chunks.chunk[i]) + row * size + column - begin;
    values[k] = is_split ? *there : *here;
    to[k] = is_split ? here : there;
  }
#pragma unroll
  for (int k = 0; k < concatenate_step; ++k)
    if (first + k * concatenate_block < elements) *to[k] = values[k];
}

}  // namespace internal

template <bool is_split, class Element>
Status concatenate_rows(const Executor& executor, const Chunks& chunks, int64_t rows, int64_t columns, Element* y) {
  int64_t width = chunks.start[chunks.count] - chunks.start[0], elements = rows * width;
  unsigned blocks = unsigned(ceil_div(elements, internal::concatenate_block * internal::concatenate_step));
  auto launch = [&](auto index) {
    using Index = decltype(index);
    internal::concatenate_elements<is_split><<<blocks, internal::concatenate_block, 0, executor.stream>>>(
        chunks, Divisor<Index>(width), elements, Index(columns), y);
    return launched();
  };
  return rows * columns < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
