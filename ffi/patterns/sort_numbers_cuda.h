// Few long rows in order: CUB's radix sort of the numbers as they are, which needs no keys to be written first, and no
// numbers to be made of them afterwards. Zeros of both signs are equal to it, too. NaNs it puts at both ends, by their
// signs and bits: where that is not our order, the numbers between are moved and the NaNs are copied again.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cub/device/device_radix_sort.cuh>

#include "compact_tiles_cuda.h"
#include "cub_memory_cuda.h"
#include "each_cell_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t few_rows = 16, long_row = 1 << 22;

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

// Where CUB has left a row's NaNs and where they belong, by places in the sorted row.
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
  NanEnds* ends;

  __device__ bool is_nan(Key bits) const { return Key(bits & ~KeyOrder<Key>::high) > row.order.infinity; }

  // The first place whose cell is, or is not, a NaN: of cells before which there are only others.
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

  __device__ bool idle(int64_t) const { return ends->in_order; }
  __device__ bool operator()(int64_t, int64_t i) const { return is_nan(row.x[i]); }
  __device__ void operator()(int64_t, uint32_t place, int64_t i) const {
    values[ends->nans_to + place] = row.x[i];
    if (indices) indices[ends->nans_to + place] = int32_t(i);
  }
};

template <class Key>
__global__ void find_nan_ends(SortedNumbers<Key> sorted) {
  *sorted.ends = sorted.find();
}

// The numbers, if they are to move: out of the sorted row, or in again at their new place.
template <class Key>
__global__ void __launch_bounds__(cells_block)
    move_numbers(SortedNumbers<Key> sorted, Key* spare, uint32_t* spare_places, bool in) {
  NanEnds ends = *sorted.ends;
  if (ends.from == ends.to) return;
  each_cell(1, ends.numbers, [&](int64_t, int64_t i) {
    if (in) {
      sorted.values[ends.to + i] = spare[i];
      if (sorted.indices) sorted.indices[ends.to + i] = int32_t(spare_places[i]);
    } else {
      spare[i] = sorted.values[ends.from + i];
      if (sorted.indices) spare_places[i] = uint32_t(sorted.indices[ends.from + i]);
    }
  });
}

template <class Key>
Status put_nans_in_order(Executor executor, const SortedNumbers<Key>& sorted, uint32_t* spare_places) {
  Key* spare = executor.scratch<Key>(sorted.row.count);
  if (!spare) return small_workspace;
  unsigned blocks = unsigned(std::min<int64_t>(ceil_div(sorted.row.count, cells_block), 132 * 8));
  find_nan_ends<<<1, 1, 0, executor.stream>>>(sorted);
  for (bool in : {false, true})
    move_numbers<<<blocks, cells_block, 0, executor.stream>>>(sorted, spare, spare_places, in);
  int32_t* uncounted = nullptr;
  return write_compacted(executor, sorted, sorted, uncounted, 1, sorted.row.count);
}

inline __global__ void __launch_bounds__(cells_block) write_places(uint32_t* places, uint32_t count) {
  each_cell(1, count, [&](int64_t, int64_t i) { places[i] = uint32_t(i); });
}

// Rows of at most 2^31 - 1 cells.
template <class T, class Key>
Status sort_numbers(Executor executor, const Rows<Key>& rows, const FirstCells<Key>& out) {
  using Number = typename CubNumber<T>::Type;
  uint32_t count = uint32_t(rows.count), *places = nullptr;
  if (out.indices) {
    places = executor.scratch<uint32_t>(count);
    if (!places) return small_workspace;
  }
  NanEnds* ends = executor.scratch<NanEnds>(1);
  if (!ends) return small_workspace;
  for (int64_t row = 0; row < rows.rows; ++row) {
    SortedNumbers<Key> sorted{rows.some(row, 1), out.values + row * count,
                              out.indices ? out.indices + row * count : nullptr, ends};
    auto from = reinterpret_cast<const Number*>(sorted.row.x);
    auto to = reinterpret_cast<Number*>(sorted.values);
    auto to_places = reinterpret_cast<uint32_t*>(sorted.indices);
    if (places) {
      unsigned blocks = unsigned(ceil_div(count, cells_block));
      write_places<<<blocks, cells_block, 0, executor.stream>>>(places, count);
    }
    constexpr int bits = 8 * sizeof(T);
    Status status = with_memory(executor, [&](void* memory, size_t& bytes) {
      using Sort = cub::DeviceRadixSort;
      cudaStream_t stream = executor.stream;
      if (rows.order.inverted)
        return places ? Sort::SortPairsDescending(memory, bytes, from, to, places, to_places, count, 0, bits, stream)
                      : Sort::SortKeysDescending(memory, bytes, from, to, count, 0, bits, stream);
      return places ? Sort::SortPairs(memory, bytes, from, to, places, to_places, count, 0, bits, stream)
                    : Sort::SortKeys(memory, bytes, from, to, count, 0, bits, stream);
    });
    if (status.ok() && rows.order.infinity) status = put_nans_in_order(executor, sorted, places);
    if (!status.ok()) return status;
  }
  return launched();
}

}  // namespace internal
}  // namespace baracuda
