// Which cells of a row are chosen: how many of each tile, and how many before it. The first half of every compaction.
#pragma once

#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int compact_block = 256, compact_items = 8, compact_tile = compact_block * compact_items;

// A predicate may know of rows without any chosen cell.
template <class Predicate>
__device__ bool is_idle(const Predicate& chosen, int64_t row) {
  if constexpr (requires { chosen.idle(row); }) return chosen.idle(row);
  return false;
}

// The chosen cells of a tile, counted: those of thread t are the items t, t + 256, ... of it.
template <class Predicate>
__global__ void __launch_bounds__(compact_block)
    count_chosen(Predicate chosen, uint32_t* counts, int64_t rows, int64_t count, int64_t tiles) {
  using Reduce = cub::BlockReduce<uint32_t, compact_block>;
  __shared__ typename Reduce::TempStorage memory;
  for (int64_t job = blockIdx.x; job < rows * tiles; job += gridDim.x) {
    int64_t row = job / tiles, begin = job % tiles * compact_tile;
    if (is_idle(chosen, row)) {
      if (threadIdx.x == 0) counts[job] = 0;
      continue;
    }
    uint32_t mine = 0;
#pragma unroll
    for (int k = 0; k < compact_items; ++k) {
      int64_t i = begin + k * compact_block + threadIdx.x;
      if (i < count) mine += chosen(row * count, i);
    }
    uint32_t sum = Reduce(memory).Sum(mine);
    if (threadIdx.x == 0) counts[job] = sum;
    __syncthreads();
  }
}

// The counts of a row's tiles become what is before each, and `found` the sum of all.
template <class Found>
__global__ void __launch_bounds__(1024) sum_counts(uint32_t* counts, Found* found, int64_t rows, int64_t tiles) {
  using Scan = cub::BlockScan<uint32_t, 1024>;
  __shared__ typename Scan::TempStorage memory;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    uint32_t before = 0;
    for (int64_t first = 0; first < tiles; first += 1024) {
      int64_t tile = first + threadIdx.x;
      uint32_t mine = tile < tiles ? counts[row * tiles + tile] : 0, earlier, sum;
      Scan(memory).ExclusiveSum(mine, earlier, sum);
      if (tile < tiles) counts[row * tiles + tile] = before + earlier;
      before += sum;
      __syncthreads();
    }
    if (threadIdx.x == 0 && found) found[row] = Found(before);
  }
}

// Calls write(row, how many chosen cells of the row are before it, cell) for each chosen cell.
template <class Predicate, class Write>
__global__ void __launch_bounds__(compact_block)
    write_chosen(Predicate chosen, Write write, const uint32_t* before, int64_t rows, int64_t count, int64_t tiles) {
  using Scan = cub::BlockScan<uint32_t, compact_block>;
  __shared__ typename Scan::TempStorage memory;
  for (int64_t job = blockIdx.x; job < rows * tiles; job += gridDim.x) {
    int64_t row = job / tiles, begin = job % tiles * compact_tile;
    if (is_idle(chosen, row)) continue;
    uint32_t place = before[job];
    // Each step's bits of a warp are in order; so that all steps need one scan, a warp's cells are neighbours.
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int64_t first = begin + warp * (32 * compact_items) + lane;
    uint32_t bits[compact_items], mine = 0;
#pragma unroll
    for (int k = 0; k < compact_items; ++k) {
      int64_t i = first + k * 32;
      bits[k] = __ballot_sync(~0u, i < count && chosen(row * count, i));
      mine += __popc(bits[k]);
    }
    uint32_t earlier;
    Scan(memory).ExclusiveSum(lane == 0 ? mine : 0, earlier);
    place += __shfl_sync(~0u, earlier, 0);
#pragma unroll
    for (int k = 0; k < compact_items; ++k) {
      if (bits[k] >> lane & 1) write(row, place + __popc(bits[k] & ((1u << lane) - 1)), first + k * 32);
      place += __popc(bits[k]);
    }
    __syncthreads();
  }
}

template <class Predicate, class Write, class Found>
Status write_compacted(Executor executor, const Predicate& chosen, const Write& write, uint32_t* counts, Found* found,
                       int64_t rows, int64_t count) {
  int64_t tiles = ceil_div(count, compact_tile);
  unsigned blocks = unsigned(rows * tiles < 0x7fffffff ? rows * tiles : 0x7fffffff);
  count_chosen<<<blocks, compact_block, 0, executor.stream>>>(chosen, counts, rows, count, tiles);
  sum_counts<<<unsigned(rows < 4096 ? rows : 4096), 1024, 0, executor.stream>>>(counts, found, rows, tiles);
  write_chosen<<<blocks, compact_block, 0, executor.stream>>>(chosen, write, counts, rows, count, tiles);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
