// Few long rows in order: CUB's radix sort of the numbers as they are, which needs no keys to be written first, and no
// numbers to be made of them afterwards. Zeros of both signs are equal to it, too. NaNs it puts at both ends, by their
// signs and bits: where that is not the order of this file, the numbers between are moved and the NaNs are copied
// again.
#pragma once

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cub/device/device_radix_sort.cuh>

#include "cub_memory_cuda.h"
#include "device_cuda.h"
#include "each_element_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t long_row = 1 << 21;
// Rows that are sorted one after the other; of fewer bits several are sorted as one (sort_large_cuda.h).
template <class Key>
inline constexpr int64_t few_rows = sizeof(Key) == 8 ? 16 : 1;

// What CUB knows a number as.
template <class T>
struct CubNumber {
  using Type = T;
};
template <>
struct CubNumber<Half> {
  using Type = __half;
};
template <>
struct CubNumber<BFloat16> {
  using Type = __nv_bfloat16;
};

// Where CUB has left a row's NaNs and where they belong, by positions in the sorted row.
struct NanEnds {
  uint32_t numbers, from, to;  // how many numbers there are, where they begin, and where they shall
  uint32_t nans, nans_to;      // how many NaNs there are, and where they shall begin
  bool in_order;               // all NaNs are where they belong and alike
};

template <class Key>
struct SortedNumbers {
  Rows<Key> row;  // one
  Key* values;
  int32_t* indices;  // or null

  __device__ bool is_nan(Key bits) const { return Key(bits & ~KeyOrder<Key>::high) > row.order.infinity; }

  // The first position whose element is, or is not, a NaN: of elements before which there are only others.
  __device__ uint32_t first(uint32_t low, uint32_t high, bool nan) const {
    while (low < high) {
      uint32_t middle = low + (high - low) / 2;
      if (is_nan(values[middle]) == nan)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
  __device__ NanEnds find() const {
    uint32_t count = uint32_t(row.count);
    uint32_t front = is_nan(values[0]) ? first(0, count, false) : 0;
    uint32_t back = front < count && is_nan(values[count - 1]) ? first(front, count, true) : count;
    uint32_t numbers = back - front, nans = count - numbers;
    uint32_t to = row.order.inverted ? nans : 0, nans_to = row.order.inverted ? 0 : numbers;
    bool alike = nans == 0 || values[nans_to] == values[nans_to + nans - 1];
    return {numbers, front, to, nans, nans_to, front == to && alike};
  }

  __device__ void put(uint32_t position, Key value, uint32_t index) const {
    values[position] = value;
    if (indices) indices[position] = int32_t(index);
  }
};

inline constexpr int nan_block = 512, nan_blocks = 128;

// One launch, since there is nearly always nothing to do. Its blocks run at once, and each has a part of the row. No
// element is put before all blocks have found the ends, and told how many NaNs they have or kept their numbers.
template <class Key>
__global__ void __launch_bounds__(nan_block)
    put_nans_in_order(SortedNumbers<Key> sorted, Key* spare, uint32_t* spare_positions, uint32_t* nans_of_part) {
  __shared__ NanEnds shared;
  __shared__ uint32_t of_warp[nan_block / 32];
  auto grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) shared = sorted.find();
  __syncthreads();
  NanEnds ends = shared;
  if (ends.in_order) return;
  int64_t thread = int64_t(blockIdx.x) * nan_block + threadIdx.x, threads = int64_t(gridDim.x) * nan_block;
  if (ends.from != ends.to) {
    for (int64_t i = thread; i < ends.numbers; i += threads) {
      spare[i] = sorted.values[ends.from + i];
      if (sorted.indices) spare_positions[i] = uint32_t(sorted.indices[ends.from + i]);
    }
    grid.sync();
    for (int64_t i = thread; i < ends.numbers; i += threads)
      sorted.put(uint32_t(ends.to + i), spare[i], sorted.indices ? spare_positions[i] : 0);
  }
  int64_t part = (sorted.row.count + threads - 1) / threads * nan_block;
  int64_t begin = blockIdx.x * part, end = begin + part < sorted.row.count ? begin + part : sorted.row.count;
  auto is_nan = [&](int64_t i) { return i < end && sorted.is_nan(sorted.row.x[i]); };
  uint32_t count = 0;
  for (int64_t first = begin; first < end; first += nan_block)
    count += __syncthreads_count(is_nan(first + threadIdx.x));
  if (threadIdx.x == 0) nans_of_part[blockIdx.x] = count;
  grid.sync();
  uint32_t position = ends.nans_to;
  for (int other = 0; other < blockIdx.x; ++other) position += nans_of_part[other];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t first = begin; first < end; first += nan_block) {
    int64_t i = first + threadIdx.x;
    uint32_t bits = __ballot_sync(~0u, is_nan(i));
    if (lane == 0) of_warp[warp] = __popc(bits);
    __syncthreads();
    uint32_t mine = position;
    for (int other = 0; other < nan_block / 32; ++other) {
      if (other < warp) mine += of_warp[other];
      position += of_warp[other];
    }
    if (bits >> lane & 1) sorted.put(mine + __popc(bits & ((1u << lane) - 1)), sorted.row.x[i], uint32_t(i));
    __syncthreads();
  }
}

static __global__ void __launch_bounds__(elements_block) write_positions(uint32_t* positions, uint32_t count) {
  each_element(1, count, [&](int64_t, int64_t i) { positions[i] = uint32_t(i); });
}

// No more blocks than multiprocessors, since all have to run at once.
inline cudaError_t launch_together(const void* kernel, void** arguments, cudaStream_t stream) {
  int multiprocessors = 0;
  cudaError_t error = device_attribute(cudaDevAttrMultiProcessorCount, multiprocessors);
  if (error != cudaSuccess) return error;
  unsigned blocks = unsigned(std::min(multiprocessors, nan_blocks));
  return cudaLaunchCooperativeKernel(kernel, blocks, nan_block, arguments, 0, stream);
}

// Rows of at most 2^31 - 1 elements.
template <class T, class Key>
Status sort_numbers(Executor executor, const Rows<Key>& rows, const FirstElements<Key>& out) {
  using Number = typename CubNumber<T>::Type;
  bool has_nans = rows.order.infinity != 0;
  uint32_t count = uint32_t(rows.count), *positions = out.indices ? executor.scratch<uint32_t>(count) : nullptr;
  Key* spare = has_nans ? executor.scratch<Key>(count) : nullptr;
  uint32_t* nans_of_part = has_nans ? executor.scratch<uint32_t>(nan_blocks) : nullptr;
  if ((out.indices && !positions) || (has_nans && !(spare && nans_of_part))) return small_workspace;
  for (int64_t row = 0; row < rows.rows; ++row) {
    SortedNumbers<Key> sorted{rows.some(row, 1), out.values + row * count,
                              out.indices ? out.indices + row * count : nullptr};
    auto from = reinterpret_cast<const Number*>(sorted.row.x);
    auto to = reinterpret_cast<Number*>(sorted.values);
    auto to_positions = reinterpret_cast<uint32_t*>(sorted.indices);
    if (positions) {
      unsigned blocks = unsigned(ceil_div(count, elements_block));
      write_positions<<<blocks, elements_block, 0, executor.stream>>>(positions, count);
    }
    constexpr int bits = 8 * sizeof(T);
    Status status = with_memory(executor, [&](void* memory, size_t& bytes) {
      using Sort = cub::DeviceRadixSort;
      cudaStream_t stream = executor.stream;
      if (rows.order.inverted)
        return positions
                   ? Sort::SortPairsDescending(memory, bytes, from, to, positions, to_positions, count, 0, bits, stream)
                   : Sort::SortKeysDescending(memory, bytes, from, to, count, 0, bits, stream);
      return positions ? Sort::SortPairs(memory, bytes, from, to, positions, to_positions, count, 0, bits, stream)
                       : Sort::SortKeys(memory, bytes, from, to, count, 0, bits, stream);
    });
    if (!status.ok()) return status;
    if (!has_nans) continue;
    void* arguments[] = {&sorted, &spare, &positions, &nans_of_part};
    cudaError_t error =
        launch_together(reinterpret_cast<const void*>(put_nans_in_order<Key>), arguments, executor.stream);
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
  }
  return launched();
}

}  // namespace internal
}  // namespace baracuda
