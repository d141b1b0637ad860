// The take pattern on a CUDA grid: a thread has a few elements of y, far apart.
#pragma once

#include "streaming_cuda.h"
#include "take.h"

namespace baracuda {
namespace internal {

inline constexpr int take_block = 256, take_step = 4;

template <class Index, class Element>
__global__ void __launch_bounds__(take_block)
    take_elements(TakeShape shape, Divisor<Index> columns, int64_t elements, const int32_t* index, const Element* x,
                  Element fill, Element* y) {
  int64_t first = int64_t(blockIdx.x) * take_block * take_step + threadIdx.x;
  Element values[take_step];
#pragma unroll
  for (int i = 0; i < take_step; ++i) {
    if (first + i * take_block >= elements) continue;
    Index element = Index(first + i * take_block), row = columns.quotient(element);
    int64_t from = shape.position(index, row);
    values[i] = from < 0 ? fill : x[from + element - row * columns.value];
  }
#pragma unroll
  for (int i = 0; i < take_step; ++i)
    if (first + i * take_block < elements) store_streaming(y + first + i * take_block, values[i]);
}

}  // namespace internal

template <class Element>
Status take_rows(const Executor& executor, const TakeShape& shape, const int32_t* index, const Element* x, Element fill,
                 Element* y) {
  int64_t elements = shape.batches * shape.rows * shape.columns;
  unsigned blocks = unsigned(ceil_div(elements, internal::take_block * internal::take_step));
  auto launch = [&](auto type) {
    using Index = decltype(type);
    internal::take_elements<<<blocks, internal::take_block, 0, executor.stream>>>(shape, Divisor<Index>(shape.columns),
                                                                                  elements, index, x, fill, y);
    return launched();
  };
  return elements < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
