// Elements that are put into a row which is long against the L2 cache. They are parted by the high bits of their places
// first, so that those put at a time go to a stretch that the cache holds, and is written to memory once.
#pragma once

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "cub_memory_cuda.h"
#include "sort.h"

namespace baracuda {
namespace internal {

inline constexpr int put_parted_block = 256, put_parted_ahead = 8, put_part_bits = 8;
inline constexpr int64_t least_parted = 64 << 20;  // bytes of a row's elements

template <class Bits>
__global__ void __launch_bounds__(put_parted_block)
    put_pairs(const uint32_t* index, const Bits* elements, Bits* row, uint32_t items, uint32_t count) {
  uint32_t first = blockIdx.x * (put_parted_block * put_parted_ahead) + threadIdx.x;
  uint32_t to[put_parted_ahead];
  Bits some[put_parted_ahead];
#pragma unroll
  for (int k = 0; k < put_parted_ahead; ++k)
    if (uint32_t item = first + k * put_parted_block; item < items) to[k] = index[item], some[k] = elements[item];
#pragma unroll
  for (int k = 0; k < put_parted_ahead; ++k)
    if (first + k * put_parted_block < items && to[k] < count) row[to[k]] = some[k];
}

// Whether the rows are such; their numbers are of 32 bits.
template <class T>
bool is_parted(const PutShape& shape) {
  return shape.unique && shape.items * int64_t(sizeof(T)) >= least_parted && shape.items <= 0x7fffffff;
}

template <class Bits>
Status put_parted(Executor executor, const int32_t* index, const Bits* dy, Bits* dx, PutShape shape) {
  uint32_t items = uint32_t(shape.items), count = uint32_t(std::min<int64_t>(shape.count, 1u << 31));
  uint32_t* places = executor.scratch<uint32_t>(items);
  Bits* elements = executor.scratch<Bits>(items);
  if (!places || !elements) return small_workspace;
  int bits = 0;
  while (bits < 31 && (count - 1) >> bits) ++bits;
  for (int64_t row = 0; row < shape.rows; ++row) {
    auto* from = reinterpret_cast<const uint32_t*>(index + row * shape.items);
    Status status = with_memory(executor, [&](void* memory, size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, from, places, dy + row * shape.items, elements, items,
                                             std::max(bits - put_part_bits, 0), bits, executor.stream);
    });
    if (!status.ok()) return status;
    put_pairs<<<unsigned(ceil_div(items, put_parted_block * put_parted_ahead)), put_parted_block, 0, executor.stream>>>(
        places, elements, dx + row * shape.count, items, count);
  }
  return launched();
}

}  // namespace internal
}  // namespace baracuda
