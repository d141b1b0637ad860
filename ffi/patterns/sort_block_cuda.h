// Rows in order, a block for each: a radix sort in shared memory. Keys stay where they are; what moves is the order,
// two bytes for an element.
#pragma once

#include <cub/block/block_scan.cuh>

#include "digit_rank_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int row_digit_bits = 8, row_digits = 1 << row_digit_bits;

template <class KeyType, int block_threads, int block_items>
struct RowSort {
  using Key = KeyType;
  static constexpr int threads = block_threads, items = block_items, warps = threads / 32, most = threads * items;
  static constexpr int own = row_digits > threads ? row_digits / threads : 1;  // digits that a thread looks after
  using Scan = cub::BlockScan<uint32_t, threads>;

  Key keys[most];
  uint16_t order[most];
  uint16_t counts[warps][row_digits];
  uint32_t masks[warps][row_digits];
  typename Scan::TempStorage scan;

  // How many steps of 32 elements each warp takes for so many elements. What is beyond them has the last keys of all.
  static __device__ int steps_for(int count) { return (count + 32 * warps - 1) / (32 * warps); }

  // By so many of the keys' lowest bits.
  __device__ void sort(int steps, int bits = 8 * sizeof(Key)) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp * 32 * steps + lane;
    for (int i = lane; i < row_digits; i += 32) masks[warp][i] = 0;
#pragma unroll
    for (int k = 0; k < items; ++k)
      if (k < steps) order[first + k * 32] = uint16_t(first + k * 32);
    for (int shift = 0; shift < bits; shift += row_digit_bits) sort_by(shift, steps, warp, lane, first);
  }

 private:
  __device__ uint32_t digit(uint32_t at, int shift) const { return uint32_t(keys[at] >> shift) % row_digits; }

  __device__ void sort_by(int shift, int steps, int warp, int lane, int first) {
    for (int i = lane; i < row_digits / 2; i += 32) reinterpret_cast<uint32_t*>(counts[warp])[i] = 0;
    __syncwarp();
    uint32_t element[items];  // which, and its rank among those of its warp with its digit
#pragma unroll
    for (int k = 0; k < items; ++k)
      if (k < steps) {
        uint32_t at = order[first + k * 32];
        element[k] = at | uint32_t(rank_in_warp(counts[warp], masks[warp], digit(at, shift))) << 16;
      }
    __syncthreads();
    // What each warp has of a digit becomes what comes before it.
    uint32_t here[own];
    bool alike = false;
#pragma unroll
    for (int i = 0; i < own; ++i) {
      int mine = threadIdx.x * own + i;
      here[i] = 0;
      if (mine < row_digits)
        for (int w = 0; w < warps; ++w) {
          uint32_t of_warp = counts[w][mine];
          counts[w][mine] = uint16_t(here[i]);
          here[i] += of_warp;
        }
      alike |= here[i] == uint32_t(steps * threads);
    }
    uint32_t before[own];
    Scan(scan).ExclusiveSum(here, before);
#pragma unroll
    for (int i = 0; i < own; ++i)
      if (int mine = threadIdx.x * own + i; mine < row_digits)
        for (int w = 0; w < warps; ++w) counts[w][mine] += uint16_t(before[i]);
    if (__syncthreads_or(alike)) return;
#pragma unroll
    for (int k = 0; k < items; ++k)
      if (k < steps) {
        uint32_t at = element[k] & 0xffff;
        order[(element[k] >> 16) + counts[warp][digit(at, shift)]] = uint16_t(at);
      }
    __syncthreads();
  }
};

template <class Sort, class Output>
__global__ void __launch_bounds__(Sort::threads) sort_rows_by_blocks(Rows<typename Sort::Key> rows, Output out) {
  extern __shared__ __align__(16) char memory[];
  Sort& sort = *reinterpret_cast<Sort*>(memory);
  int count = int(rows.count), steps = Sort::steps_for(count);
  for (int64_t row = blockIdx.x; row < rows.rows; row += gridDim.x) {
    auto elements = rows.row(row);
    constexpr int ahead = 8;
    for (int first = threadIdx.x; first < steps * Sort::threads; first += ahead * Sort::threads) {
      typename Sort::Key bits[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k * Sort::threads < count) bits[k] = elements.x[first + k * Sort::threads];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (int i = first + k * Sort::threads; i < steps * Sort::threads)
          sort.keys[i] = i < count ? elements.order.of(bits[k]) : KeyOrder<typename Sort::Key>::all;
    }
    __syncthreads();
    sort.sort(steps);
    write_row(out, rows, row, Sort::threads, threadIdx.x, [&](int64_t rank) { return sort.order[rank]; });
    __syncthreads();
  }
}

template <int threads, int items, class Key, class Output>
Status sort_rows_by(Executor executor, const Rows<Key>& rows, const Output& out) {
  using Sort = RowSort<Key, threads, items>;
  auto kernel = sort_rows_by_blocks<Sort, Output>;
  if (Status status = allow_shared_memory(kernel, sizeof(Sort)); !status.ok()) return status;
  kernel<<<grid_of(rows.rows), threads, sizeof(Sort), executor.stream>>>(rows, out);
  return launched();
}

// The longest row that a block sorts.
template <class Key>
inline constexpr int64_t most_in_block = sizeof(Key) == 8 ? 16384 : 32768;

template <class Key, class Output>
Status sort_middle_rows(Executor executor, const Rows<Key>& rows, const Output& out) {
  if (rows.count <= 1024) return sort_rows_by<128, 8>(executor, rows, out);
  if (rows.count <= 4096) return sort_rows_by<256, 16>(executor, rows, out);
  if (rows.count <= 16384) return sort_rows_by<512, 32>(executor, rows, out);
  if constexpr (sizeof(Key) < 8) return sort_rows_by<512, 64>(executor, rows, out);
  return {"a row is too long for a block"};
}

}  // namespace internal
}  // namespace baracuda
