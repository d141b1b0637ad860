// Elements that are put into a row which is long against the L2 cache. They are parted by the high bits of their
// positions first, into ranges of the row that fit into shared memory, so that each is written from end to end.
#pragma once

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "cub_memory_cuda.h"
#include "shared_memory_cuda.h"
#include "sort.h"

namespace baracuda {
namespace internal {

inline constexpr int scatter_range_block = 512;
inline constexpr int64_t scatter_range_bytes = 1 << 16, least_parted = 64 << 20;  // of a range's, and a row's elements

// Elements in the order of their positions' digits, each of which is a range: positions from digit << low on.
template <class Bits>
struct PartedElements {
  const uint32_t* positions;
  const Bits* elements;
  uint32_t items, count;
  int low, bits;

  __device__ uint32_t digit(uint32_t position) const { return (position >> low) & ((1u << (bits - low)) - 1); }
  // The first element of a digit or of a greater one.
  __device__ uint32_t first(uint32_t of) const {
    if (items == count) return min(of << low, items);  // a permutation
    uint32_t from = 0, to = items;
    while (from < to) {
      uint32_t middle = from + (to - from) / 2;
      if (digit(positions[middle]) < of)
        from = middle + 1;
      else
        to = middle;
    }
    return from;
  }
};

template <class Bits>
__global__ void __launch_bounds__(scatter_range_block) scatter_ranges(PartedElements<Bits> parted, Bits* row) {
  constexpr int ahead = 8;
  extern __shared__ __align__(16) char memory[];
  __shared__ uint32_t ends[2];
  Bits* mine = reinterpret_cast<Bits*>(memory);
  uint32_t begin = blockIdx.x << parted.low, length = min(1u << parted.low, parted.count - begin), thread = threadIdx.x;
  if (thread < 2) ends[thread] = parted.first(blockIdx.x + thread);
  __syncthreads();
  uint32_t end = ends[1];
  if (end - ends[0] < length)
    for (uint32_t i = thread; i < length; i += scatter_range_block) mine[i] = Bits(0);
  __syncthreads();
  for (uint32_t first = ends[0] + thread; first < end; first += ahead * scatter_range_block) {
    uint32_t to[ahead];
    Bits some[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (uint32_t item = first + k * scatter_range_block; item < end)
        to[k] = parted.positions[item] - begin, some[k] = parted.elements[item];
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (first + k * scatter_range_block < end && to[k] < length) mine[to[k]] = some[k];
  }
  __syncthreads();
#pragma unroll 4
  for (uint32_t i = thread; i < length; i += scatter_range_block) row[begin + i] = mine[i];
}

// Whether the rows are such; their numbers are of 32 bits.
template <class T>
bool is_parted(const ScatterShape& shape) {
  return shape.unique && shape.items * int64_t(sizeof(T)) >= least_parted && shape.items <= 0x7fffffff &&
         shape.count <= 0x7fffffff;
}

template <class Bits>
Status scatter_parted(Executor executor, const int32_t* index, const Bits* dy, Bits* dx, ScatterShape shape) {
  PartedElements<Bits> parted{nullptr, nullptr, uint32_t(shape.items), uint32_t(shape.count), 0, 0};
  uint32_t* positions = executor.scratch<uint32_t>(shape.items);
  Bits* elements = executor.scratch<Bits>(shape.items);
  if (!positions || !elements) return small_workspace;
  parted.positions = positions, parted.elements = elements;
  while ((scatter_range_bytes / int64_t(sizeof(Bits))) >> (parted.low + 1)) ++parted.low;
  while ((parted.count - 1) >> parted.bits) ++parted.bits;
  if (Status status = allow_shared_memory(scatter_ranges<Bits>, scatter_range_bytes); !status.ok()) return status;
  unsigned ranges = unsigned(ceil_div(shape.count, int64_t(1) << parted.low));
  for (int64_t row = 0; row < shape.rows; ++row) {
    auto* from = reinterpret_cast<const uint32_t*>(index + row * shape.items);
    Status status = with_memory(executor, [&](void* memory, size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, from, positions, dy + row * shape.items, elements,
                                             uint32_t(shape.items), parted.low, parted.bits, executor.stream);
    });
    if (!status.ok()) return status;
    scatter_ranges<<<ranges, scatter_range_block, scatter_range_bytes, executor.stream>>>(parted,
                                                                                          dx + row * shape.count);
  }
  return launched();
}

}  // namespace internal
}  // namespace baracuda
