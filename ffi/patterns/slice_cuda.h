// The slice pattern on a CUDA grid: a thread has a few cells of the block, far apart.
#pragma once

#include "slice.h"

namespace baracuda {
namespace internal {

inline constexpr int slice_block = 256, slice_step = 4;

template <bool is_write, class Index, class Cell>
__global__ void __launch_bounds__(slice_block)
    move_block_cells(const __grid_constant__ SliceShape shape, Divisor<Index> batch_cells, int64_t cells, Cell* whole,
                     Cell* block) {
  int64_t first = int64_t(blockIdx.x) * slice_block * slice_step + threadIdx.x;
  Cell values[slice_step];
  Cell* to[slice_step];
#pragma unroll
  for (int i = 0; i < slice_step; ++i) {
    int64_t cell = first + i * slice_block;
    if (cell >= cells) continue;
    Index batch = batch_cells.quotient(Index(cell)), rest = Index(cell) - batch * batch_cells.value;
    int64_t place = shape.begin(batch);
#pragma unroll
    for (int k = slice_axes - 1; k >= 0; --k) {
      if (k >= shape.axes) continue;
      Index quotient = k == 0 ? 0 : rest / Index(shape.axis[k].size);
      place += int64_t(rest - quotient * Index(shape.axis[k].size)) * shape.axis[k].stride;
      rest = quotient;
    }
    values[i] = is_write ? block[cell] : whole[place];
    to[i] = is_write ? whole + place : block + cell;
  }
#pragma unroll
  for (int i = 0; i < slice_step; ++i)
    if (first + i * slice_block < cells) *to[i] = values[i];
}

}  // namespace internal

inline Status copy_bytes(const Executor& executor, const void* from, void* to, int64_t bytes) {
  cudaError_t error = cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToDevice, executor.stream);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

template <bool is_write, class Cell>
Status move_block(const Executor& executor, const SliceShape& shape, Cell* whole, Cell* block) {
  int64_t cells = shape.batches * shape.cells;
  unsigned blocks = unsigned(ceil_div(cells, internal::slice_block * internal::slice_step));
  auto launch = [&](auto index) {
    using Index = decltype(index);
    internal::move_block_cells<is_write><<<blocks, internal::slice_block, 0, executor.stream>>>(
        shape, Divisor<Index>(shape.cells), cells, whole, block);
    return launched();
  };
  return cells < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
