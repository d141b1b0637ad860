// The compact pattern on a CUDA grid: the indices of chosen elements are written, then `fill` after the last one. Where
// a warp or a block has a whole row, one kernel does both.
#pragma once

#include "compact.h"
#include "compact_tiles_cuda.h"

namespace baracuda {
namespace internal {

struct WritePositions {
  int32_t* index;
  int64_t size;
  int32_t fill;
  bool fills;  // after the last index

  __device__ void operator()(int64_t row, uint32_t position, int64_t i) const {
    if (position < size) index[row * size + position] = int32_t(i);
  }
  __device__ void end(int64_t row, uint32_t found, int thread, int threads) const {
    if (!fills) return;
    for (int64_t i = int64_t(found) + thread; i < size; i += threads) index[row * size + i] = fill;
  }
};

// What is after the last position, by `warps` for each row.
static __global__ void __launch_bounds__(compact_block)
    fill_positions(int32_t* index, const int32_t* found, CompactShape shape, int64_t warps) {
  int64_t step = int64_t(gridDim.x) * compact_warps, lane = threadIdx.x % 32;
  for (int64_t job = int64_t(blockIdx.x) * compact_warps + threadIdx.x / 32; job < shape.rows * warps; job += step) {
    int64_t row = job / warps;
    for (int64_t i = found[row] + (job - row * warps) * 32 + lane; i < shape.size; i += warps * 32)
      index[row * shape.size + i] = shape.fill;
  }
}

}  // namespace internal

// `x` are the bits of the elements.
template <class Predicate, class Key>
Status compact_rows(Executor executor, const Predicate& predicate, const Key* x, int32_t* index, int32_t* found,
                    CompactShape shape) {
  using namespace internal;
  constexpr int64_t fill_warps = 8448, few_fills = 4096;
  if (shape.rows == 0) return {};
  if (shape.count == 0) {
    cudaError_t error = cudaMemsetAsync(found, 0, size_t(shape.rows) * sizeof(int32_t), executor.stream);
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
  } else {
    bool fills = CompactCut<Key>(shape.rows, shape.count).is_whole() && shape.size <= shape.count + few_fills;
    WritePositions write{index, shape.size, shape.fill, fills};
    Status status = write_compacted(executor, x, predicate, write, found, shape.rows, shape.count);
    if (!status.ok() || fills) return status;
  }
  if (shape.size == 0) return {};
  int64_t warps = std::min<int64_t>(ceil_div(shape.size, 32), std::max<int64_t>(1, fill_warps / shape.rows));
  unsigned grid = unsigned(std::min<int64_t>(ceil_div(shape.rows * warps, compact_warps), 0x7fffffff));
  fill_positions<<<grid, compact_block, 0, executor.stream>>>(index, found, shape, warps);
  return launched();
}

}  // namespace baracuda
