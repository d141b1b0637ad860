// The slice pattern on a CUDA grid: a thread has a few elements of the block, far apart.
#pragma once

#include "slice.h"

namespace baracuda {
namespace internal {

inline constexpr int slice_block = 256, slice_step = 4;

template <bool is_write, class Index, class Element>
__global__ void __launch_bounds__(slice_block)
    move_block_elements(const __grid_constant__ SliceShape shape, Divisor<Index> batch_elements, int64_t elements,
                        Element* whole, Element* block) {
  int64_t first = int64_t(blockIdx.x) * blockDim.x * slice_step + threadIdx.x;
  Element values[slice_step];
  Element* to[slice_step]{};
#pragma unroll
  for (int i = 0; i < slice_step; ++i) {
    int64_t element = first + i * blockDim.x;
    if (element >= elements) continue;
    Index batch = batch_elements.quotient(Index(element)), rest = Index(element) - batch * batch_elements.value;
    int64_t position = int64_t(batch) * shape.whole_elements;
    bool inside = true;
#pragma unroll
    for (int k = slice_axes - 1; k >= 0; --k) {
      if (k >= shape.axes) continue;
      Index quotient = k == 0 ? 0 : rest / Index(shape.axis[k].size);
      int64_t at = shape.first(batch, k) + (rest - quotient * Index(shape.axis[k].size));
      inside = inside && shape.has(k, at);
      position += at * shape.axis[k].stride;
      rest = quotient;
    }
    if (inside || !is_write) to[i] = is_write ? whole + position : block + element;
    if (is_write)
      values[i] = block[element];
    else
      values[i] = inside ? whole[position] : Element{};
  }
#pragma unroll
  for (int i = 0; i < slice_step; ++i)
    if (to[i]) *to[i] = values[i];
}

}  // namespace internal

inline Status copy_bytes(const Executor& executor, const void* from, void* to, int64_t bytes) {
  cudaError_t error = cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToDevice, executor.stream);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

template <bool is_write, class Element>
Status move_block(const Executor& executor, const SliceShape& shape, Element* whole, Element* block) {
  int64_t elements = shape.batches * shape.elements;
  // A few rows are latency alone, in as many blocks as there are.
  constexpr int64_t few = 1 << 18;
  unsigned threads = elements < few ? 64 : internal::slice_block;
  unsigned blocks = unsigned(ceil_div(elements, threads * internal::slice_step));
  auto launch = [&](auto index) {
    using Index = decltype(index);
    internal::move_block_elements<is_write>
        <<<blocks, threads, 0, executor.stream>>>(shape, Divisor<Index>(shape.elements), elements, whole, block);
    return launched();
  };
  return elements < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
