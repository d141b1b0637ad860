// The histogram pattern on a CUDA grid: a block counts its cells in shared memory, several times over where there is
// room, so that lanes with the same bin do not wait for each other; then it adds what it has to the result. Additions
// of integers give the same in any order.
#pragma once

#include <algorithm>

#include "histogram.h"

namespace baracuda {
namespace internal {

inline constexpr int count_threads = 1024, count_ahead = 8;
inline constexpr int64_t most_counts = 49152, roomy_counts = 16384;  // of a block: 192 KiB, and 64

// A functor may have something for a whole row.
template <class Functor>
__device__ auto bins_of_row(const Functor& functor, int64_t row) {
  if constexpr (requires { functor.of_row(row); })
    return [bins = functor.of_row(row), x = functor.x + row * functor.count](int64_t i) { return bins.of(x[i]); };
  else
    return [functor, row](int64_t i) { return functor.bin(row, i); };
}

// Calls add(bin) for a block's cells of the row.
template <class Functor, class Add>
__device__ void each_bin(const Functor& functor, int64_t row, int64_t count, int64_t block, int64_t blocks,
                         const Add& add) {
  auto bin_of = bins_of_row(functor, row);
  int64_t step = blocks * count_threads;
  for (int64_t first = block * count_threads + threadIdx.x; first < count; first += count_ahead * step) {
    int64_t bins[count_ahead];
#pragma unroll
    for (int k = 0; k < count_ahead; ++k) bins[k] = first + k * step < count ? bin_of(first + k * step) : -1;
#pragma unroll
    for (int k = 0; k < count_ahead; ++k)
      if (bins[k] >= 0) add(bins[k]);
  }
}

template <class Functor>
__global__ void __launch_bounds__(count_threads, 2)
    count_in_blocks(Functor functor, int32_t* counts, CountShape shape, int64_t blocks, int copies) {
  extern __shared__ uint32_t mine[];
  int bins = int(shape.bins), copy = threadIdx.x % copies;
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks;
    for (int i = threadIdx.x; i < bins * copies; i += count_threads) mine[i] = 0;
    __syncthreads();
    each_bin(functor, row, shape.count, job % blocks, blocks,
             [&](int64_t bin) { atomicAdd(mine + int(bin) * copies + copy, 1u); });
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += count_threads) {
      uint32_t sum = 0;
      for (int i = 0; i < copies; ++i) sum += mine[bin * copies + (i + bin) % copies];
      if (sum) atomicAdd(counts + row * bins + bin, int32_t(sum));
    }
    __syncthreads();
  }
}

template <class Functor>
__global__ void __launch_bounds__(count_threads, 2)
    count_in_memory(Functor functor, int32_t* counts, CountShape shape, int64_t blocks) {
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks;
    each_bin(functor, row, shape.count, job % blocks, blocks,
             [&](int64_t bin) { atomicAdd(counts + row * shape.bins + bin, 1); });
  }
}

}  // namespace internal

template <class Functor>
Status count_bins(Executor executor, const Functor& functor, int32_t* counts, CountShape shape) {
  using namespace internal;
  if (shape.rows * shape.bins == 0) return {};
  cudaError_t error = cudaMemsetAsync(counts, 0, size_t(shape.rows * shape.bins) * sizeof(int32_t), executor.stream);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  if (shape.count == 0) return {};
  // A block has more cells than counters, if there are as many.
  int64_t cells = std::max<int64_t>(count_threads * count_ahead, shape.bins);
  int64_t blocks = std::clamp<int64_t>(ceil_div(264, shape.rows), 1, ceil_div(shape.count, cells));
  unsigned grid = unsigned(std::min<int64_t>(shape.rows * blocks, 0x7fffffff));
  if (shape.bins > most_counts) {
    count_in_memory<<<grid, count_threads, 0, executor.stream>>>(functor, counts, shape, blocks);
    return launched();
  }
  int64_t copies = 1, of_block = ceil_div(shape.count, blocks);
  while (copies < 32 && 2 * copies * shape.bins <= std::min(roomy_counts, of_block)) copies *= 2;
  int bytes = int(shape.bins * copies * sizeof(uint32_t));
  error = cudaFuncSetAttribute(count_in_blocks<Functor>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  count_in_blocks<<<grid, count_threads, size_t(bytes), executor.stream>>>(functor, counts, shape, blocks, int(copies));
  return launched();
}

}  // namespace baracuda
