// The compact pattern on a CUDA grid: the places of chosen cells are written, then what is behind.
#pragma once

#include "compact.h"
#include "compact_tiles_cuda.h"

namespace baracuda {
namespace internal {

struct WritePlaces {
  int32_t* index;
  int64_t size;

  __device__ void operator()(int64_t row, uint32_t place, int64_t i) const {
    if (place < size) index[row * size + place] = int32_t(i);
  }
};

// What is behind the last place.
__global__ inline void __launch_bounds__(compact_block)
    fill_places(int32_t* index, const int32_t* found, CompactShape shape, int64_t blocks) {
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks;
    for (int64_t i = found[row] + job % blocks * compact_block + threadIdx.x; i < shape.size;
         i += blocks * compact_block)
      index[row * shape.size + i] = shape.fill;
  }
}

}  // namespace internal

template <class Predicate>
Status compact_rows(Executor executor, const Predicate& predicate, int32_t* index, int32_t* found, CompactShape shape) {
  using namespace internal;
  if (shape.rows == 0) return {};
  if (shape.count == 0) {
    cudaError_t error = cudaMemsetAsync(found, 0, size_t(shape.rows) * sizeof(int32_t), executor.stream);
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
  } else {
    WritePlaces write{index, shape.size};
    Status status = write_compacted(executor, predicate, write, found, shape.rows, shape.count);
    if (!status.ok()) return status;
  }
  if (shape.size == 0) return {};
  int64_t blocks = std::min<int64_t>(ceil_div(shape.size, compact_block), std::max<int64_t>(1, 1056 / shape.rows));
  unsigned grid = unsigned(std::min<int64_t>(shape.rows * blocks, 0x7fffffff));
  fill_places<<<grid, compact_block, 0, executor.stream>>>(index, found, shape, blocks);
  return launched();
}

}  // namespace baracuda
