// Positions of images by bins on a CUDA grid: each is counted in its bin, bins are laid out one after the other, and
// positions are written where their bin is, in any order; then each one looks for those of its bin that come before
// it. A long list, in which that would take long, is ordered by a block, by the bits of a set.
#pragma once

#include <algorithm>

#include <cub/block/block_scan.cuh>

#include "early_cuda.h"
#include "sample_adjoint.h"

namespace baracuda {
namespace internal {

inline constexpr int bins_block = 256, bins_of_thread = 4, bins_tile = bins_block * bins_of_thread;
inline constexpr uint32_t most_looked_at = 256;  // entries of a list
inline constexpr int set_words = 4096;           // 16 KB

// The scratch memory of all batches. A batch has `stride` words of offsets: that of the bin after the last is known
// too.
template <class Sum>
struct SampleBins {
  int64_t batches, points, bins, stride, tiles;
  uint32_t *offsets, *totals;  // a count of each bin, and then where it begins; that of each tile of bins
  uint32_t *ranks, *numbers;   // of points
  SampleEntry<Sum>* entries;

  SampleBins(const SampleAdjointShape& shape)
      : batches(shape.batches), points(shape.points), bins(shape.bins()), tiles(ceil_div(bins + 1, bins_tile)) {
    stride = tiles * bins_tile;
  }
  bool take(Executor& executor) {
    offsets = executor.scratch<uint32_t>(batches * stride), totals = executor.scratch<uint32_t>(batches * tiles);
    ranks = executor.scratch<uint32_t>(batches * points), numbers = executor.scratch<uint32_t>(batches * points);
    entries = executor.scratch<SampleEntry<Sum>>(batches * points);
    return offsets && totals && ranks && numbers && entries;
  }
};

// Lanes that follow each other with the same value: the first of them, and how many there are.
struct RunOfLanes {
  int first, count;

  __device__ explicit RunOfLanes(int32_t value) {
    int lane = threadIdx.x % 32;
    int32_t before = __shfl_up_sync(~0u, value, 1);
    uint32_t firsts = __ballot_sync(~0u, lane == 0 || value != before);
    first = 31 - __clz(firsts & (~0u >> (31 - lane)));
    uint32_t after = lane == 31 ? 0 : firsts >> (lane + 1);
    count = (after ? lane + __ffs(after) : 32) - first;
  }
};

// Neighbors are often in the same bin, all of them where positions are brought to a border: a run of these is counted
// at once.
template <class Sum>
__global__ void __launch_bounds__(bins_block)
    count_positions(SampleBins<Sum> all, unsigned blocks, const int32_t* __restrict__ bins) {
  next_may_begin();
  unsigned batch = blockIdx.x / blocks;
  int64_t point = int64_t(blockIdx.x - batch * blocks) * bins_block + threadIdx.x;
  int64_t at = batch * all.points + point;
  int32_t bin = point < all.points ? bins[at] : -1;
  int lane = threadIdx.x % 32;
  RunOfLanes run(bin);
  uint32_t rank = 0;
  if (bin >= 0 && lane == run.first) rank = atomicAdd(all.offsets + batch * all.stride + bin, uint32_t(run.count));
  rank = __shfl_sync(~0u, rank, run.first) + lane - run.first;
  if (bin >= 0) all.ranks[at] = rank;
}

using BinsScan = cub::BlockScan<uint32_t, bins_block>;

// Inclusive, of a block; `total` is that of all. The memory may be used again.
__device__ inline uint32_t block_sum(uint32_t value, BinsScan::TempStorage& memory, uint32_t& total) {
  uint32_t sum;
  BinsScan(memory).InclusiveSum(value, sum, total);
  __syncthreads();
  return sum;
}

template <class Sum>
__device__ uint4* bins_of_thread_in(const SampleBins<Sum>& all) {
  return reinterpret_cast<uint4*>(all.offsets + int64_t(blockIdx.x) * bins_tile) + threadIdx.x;
}

template <class Sum>
__global__ void __launch_bounds__(bins_block) count_tiles(SampleBins<Sum> all) {
  __shared__ BinsScan::TempStorage memory;
  next_may_begin();
  wait_for_kernel_before();
  uint4 count = *bins_of_thread_in(all);
  uint32_t total;
  block_sum(count.x + count.y + count.z + count.w, memory, total);
  if (threadIdx.x == 0) all.totals[blockIdx.x] = total;
}

template <class Sum>
__global__ void __launch_bounds__(bins_block) lay_out_bins(SampleBins<Sum> all) {
  __shared__ BinsScan::TempStorage memory;
  next_may_begin();
  wait_for_kernel_before();
  unsigned batch = blockIdx.x / unsigned(all.tiles), tile = blockIdx.x - batch * unsigned(all.tiles);
  uint4* mine = bins_of_thread_in(all);
  uint4 count = *mine;
  uint32_t before = 0, begin, ignored;
  for (unsigned t = threadIdx.x; t < tile; t += bins_block) before += all.totals[batch * all.tiles + t];
  block_sum(before, memory, begin);
  uint32_t sum = count.x + count.y + count.z + count.w;
  begin += block_sum(sum, memory, ignored) - sum;
  uint4 offset;
  offset.x = begin, offset.y = offset.x + count.x, offset.z = offset.y + count.y, offset.w = offset.z + count.z;
  *mine = offset;
}

template <class Sum>
__global__ void __launch_bounds__(bins_block)
    scatter_positions(SampleBins<Sum> all, unsigned blocks, const int32_t* __restrict__ bins) {
  next_may_begin();
  wait_for_kernel_before();
  unsigned batch = blockIdx.x / blocks;
  int64_t point = int64_t(blockIdx.x - batch * blocks) * bins_block + threadIdx.x, first = batch * all.points;
  if (point >= all.points) return;
  int32_t bin = bins[first + point];
  if (bin >= 0) all.numbers[first + all.offsets[batch * all.stride + bin] + all.ranks[first + point]] = uint32_t(point);
}

// Blocks of points, and then those of bins.
template <class Sum>
__global__ void __launch_bounds__(bins_block)
    order_positions(SampleBins<Sum> all, int rank, unsigned blocks, unsigned of_points,
                    const int32_t* __restrict__ bins, const Sum* __restrict__ positions) {
  __shared__ uint32_t set[set_words], long_lists[bins_block / 32];
  __shared__ BinsScan::TempStorage memory;
  next_may_begin();
  wait_for_kernel_before();
  auto write = [&](unsigned batch, uint32_t k, uint32_t point) {
    SampleEntry<Sum> entry{};
    entry.point = point;
#pragma unroll
    for (int a = 0; a < 3; ++a)
      if (a < rank) entry.at[a] = positions[(int64_t(batch) * rank + a) * all.points + point];
    all.entries[batch * all.points + k] = entry;
  };
  if (blockIdx.x < of_points) {
    unsigned batch = blockIdx.x / blocks;
    int64_t point = int64_t(blockIdx.x - batch * blocks) * bins_block + threadIdx.x, first = batch * all.points;
    int32_t bin = point < all.points ? bins[first + point] : -1;
    if (bin < 0) return;
    const uint32_t* offsets = all.offsets + batch * all.stride + bin;
    uint32_t begin = offsets[0], end = offsets[1], before = 0;
    if (end - begin > most_looked_at) return;
    if (end - begin > 1)
      for (uint32_t k = begin; k < end; ++k) before += all.numbers[first + k] < uint32_t(point);
    write(batch, begin + before, uint32_t(point));
    return;
  }
  unsigned block = blockIdx.x - of_points, batch = block / unsigned(all.tiles), tile = block - batch * all.tiles;
  const uint32_t* offsets = all.offsets + batch * all.stride;
  const uint32_t* numbers = all.numbers + batch * all.points;
  for (int64_t first = int64_t(tile) * bins_tile, last = min(first + bins_tile, all.bins); first < last;
       first += bins_block) {
    int64_t bin = first + threadIdx.x;
    bool is_long = bin < last && offsets[bin + 1] - offsets[bin] > most_looked_at;
    uint32_t of_warp = __ballot_sync(~0u, is_long);
    if (threadIdx.x % 32 == 0) long_lists[threadIdx.x / 32] = of_warp;
    if (!__syncthreads_or(is_long)) continue;
    for (int next = 0; next < bins_block; ++next) {
      if (!(long_lists[next / 32] >> (next % 32) & 1)) continue;
      uint32_t begin = offsets[first + next], end = offsets[first + next + 1], written = begin;
      for (int64_t from = 0; from < all.points; from += set_words * 32) {
        int words = int(min(int64_t(set_words), (all.points - from + 31) / 32));
        for (int w = threadIdx.x; w < words; w += bins_block) set[w] = 0;
        __syncthreads();
        for (uint32_t k = begin + threadIdx.x; k < end; k += bins_block) {
          int64_t bit = int64_t(numbers[k]) - from;
          if (bit >= 0 && bit < set_words * 32) atomicOr(set + bit / 32, 1u << (bit % 32));
        }
        __syncthreads();
        for (int w = threadIdx.x; w - int(threadIdx.x) < words; w += bins_block) {
          uint32_t bits = w < words ? set[w] : 0, count = __popc(bits), total;
          uint32_t k = written + block_sum(count, memory, total) - count;
          for (; bits; bits &= bits - 1) write(batch, k++, uint32_t(from + w * 32 + __ffs(bits) - 1));
          written += total;
        }
        __syncthreads();
      }
    }
    __syncthreads();  // lists are read
  }
}

// Writes the entries of bins, and where each bin's begin. Bins [batches, points] are -1 for positions that read
// nothing; positions are [batches, rank, points], the last axis first.
template <class Sum>
Status order_by_bins(const Executor& executor, const SampleBins<Sum>& all, int rank, const int32_t* bins,
                     const Sum* positions) {
  size_t bytes = size_t(all.batches * all.stride) * sizeof(uint32_t);
  cudaError_t error = cudaMemsetAsync(all.offsets, 0, bytes, executor.stream);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  int64_t blocks = ceil_div(all.points, bins_block), of_points = all.batches * blocks;
  int64_t of_bins = all.batches * all.tiles;
  if (of_points + of_bins >= int64_t(1) << 31) return {"sample_adjoint: there are too many positions"};
  if (of_points == 0) return {};
  count_positions<<<unsigned(of_points), bins_block, 0, executor.stream>>>(all, unsigned(blocks), bins);
  if (Status status = launched(); !status.ok()) return status;
  dim3 tiles(static_cast<unsigned>(of_bins));
  Status status = launch_early(executor, count_tiles<Sum>, tiles, bins_block, 0, all);
  if (status.ok()) status = launch_early(executor, lay_out_bins<Sum>, tiles, bins_block, 0, all);
  if (status.ok())
    status = launch_early(executor, scatter_positions<Sum>, dim3(unsigned(of_points)), bins_block, 0, all,
                          unsigned(blocks), bins);
  if (!status.ok()) return status;
  return launch_early(executor, order_positions<Sum>, dim3(unsigned(of_points + of_bins)), bins_block, 0, all, rank,
                      unsigned(blocks), unsigned(of_points), bins, positions);
}

}  // namespace internal
}  // namespace baracuda
