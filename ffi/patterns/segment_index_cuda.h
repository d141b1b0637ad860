// The index of segments on a CUDA grid: rows in the order of their ids, by CUB's radix sort over only the bits that the
// number of segments needs, which is stable, so that rows of a segment stay in order; and where each segment begins.
#pragma once

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "segment.h"

namespace baracuda {
namespace internal {

inline constexpr int index_block = 256, index_step = 4;

// Blocks along the items of a batch, a few to a thread, by batches.
inline dim3 index_blocks(int64_t batches, int64_t items) {
  return dim3(unsigned(ceil_div(items, index_block * index_step)), unsigned(std::min<int64_t>(batches, 65535)));
}

// The sort key of a row: its batch and its segment, rows of no segment last in their batch.
template <class Id, class Key>
__global__ void __launch_bounds__(index_block)
    segment_keys(const Id* ids, int64_t batches, int64_t rows, int64_t segments, Key* keys, uint32_t* order) {
  int64_t first = int64_t(blockIdx.x) * (index_block * index_step) + threadIdx.x;
  for (int64_t batch = blockIdx.y; batch < batches; batch += gridDim.y) {
    const Id* mine = ids + batch * rows;
    Key low = Key(batch * (segments + 1));
    Id id[index_step];
#pragma unroll
    for (int k = 0; k < index_step; ++k)
      if (first + k * index_block < rows) id[k] = mine[first + k * index_block];
#pragma unroll
    for (int k = 0; k < index_step; ++k) {
      int64_t row = first + k * index_block;
      if (row >= rows) break;
      bool inside = id[k] >= 0 && int64_t(id[k]) < segments;
      keys[batch * rows + row] = low + Key(inside ? id[k] : segments);
      order[batch * rows + row] = uint32_t(row);
    }
  }
}

// offsets[batch, s] = how many of the batch's keys are less than batch * batch_step + s. A batch has fewer than 2^32.
template <class Key>
__global__ void __launch_bounds__(index_block)
    segment_offsets(const Key* keys, int64_t batches, int64_t rows, int64_t segments, int64_t batch_step,
                    uint32_t* offsets) {
  int64_t first = int64_t(blockIdx.x) * (index_block * index_step) + threadIdx.x;
  for (int64_t batch = blockIdx.y; batch < batches; batch += gridDim.y) {
    const Key* mine = keys + batch * rows;
    // All of a thread's searches take each step together. They halve the same range, so they have the same length.
    uint32_t low[index_step] = {};
    for (uint32_t left = uint32_t(rows); left > 0;) {
      uint32_t half = left / 2;
#pragma unroll
      for (int k = 0; k < index_step; ++k) {
        int64_t value = batch * batch_step + first + k * index_block;
        if (int64_t(mine[low[k] + half]) < value) low[k] += left - half;
      }
      left = half;
    }
#pragma unroll
    for (int k = 0; k < index_step; ++k)
      if (int64_t s = first + k * index_block; s <= segments) offsets[batch * (segments + 1) + s] = low[k];
  }
}

template <class Key, class Id>
Status sort_segments(Executor executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments, uint32_t* perm,
                     uint32_t* offsets) {
  int64_t total = batches * rows;
  int bits = 1;
  while ((batches * (segments + 1) - 1) >> bits) ++bits;
  Key* keys = executor.scratch<Key>(total);
  Key* sorted = executor.scratch<Key>(total);
  uint32_t* order = executor.scratch<uint32_t>(total);
  if (!keys || !sorted || !order) return small_workspace;
  cub::DoubleBuffer<Key> key_buffers(keys, sorted);
  cub::DoubleBuffer<uint32_t> row_buffers(order, perm);
  if (total > 0) {
    segment_keys<<<index_blocks(batches, rows), index_block, 0, executor.stream>>>(ids, batches, rows, segments, keys,
                                                                                   order);
    if (Status status = launched(); !status.ok()) return status;
    // CUB counts in 32 bits where its caller does, which is a quarter faster.
    auto sort = [&](void* memory, size_t& bytes) {
      if (total < int64_t(1) << 31)
        return cub::DeviceRadixSort::SortPairs(memory, bytes, key_buffers, row_buffers, int32_t(total), 0, bits,
                                               executor.stream);
      return cub::DeviceRadixSort::SortPairs(memory, bytes, key_buffers, row_buffers, total, 0, bits, executor.stream);
    };
    size_t bytes = 0;
    cudaError_t error = sort(nullptr, bytes);
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
    char* memory = executor.scratch<char>(int64_t(bytes));
    if (!memory) return small_workspace;
    error = sort(memory, bytes);
    if (error == cudaSuccess && row_buffers.Current() != perm)
      error = cudaMemcpyAsync(perm, row_buffers.Current(), size_t(total) * sizeof(uint32_t), cudaMemcpyDeviceToDevice,
                              executor.stream);
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
  }
  segment_offsets<<<index_blocks(batches, segments + 1), index_block, 0, executor.stream>>>(
      key_buffers.Current(), batches, rows, segments, segments + 1, offsets);
  return launched();
}

}  // namespace internal

template <class Id>
Status index_segments(const Executor& executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments,
                      uint32_t* perm, uint32_t* offsets) {
  if (batches == 0) return {};
  if (perm == nullptr) {
    using namespace internal;
    segment_offsets<<<index_blocks(batches, segments + 1), index_block, 0, executor.stream>>>(ids, batches, rows,
                                                                                              segments, 0, offsets);
    return launched();
  }
  if (batches * (segments + 1) <= int64_t(1) << 32)
    return internal::sort_segments<uint32_t>(executor, ids, batches, rows, segments, perm, offsets);
  return internal::sort_segments<uint64_t>(executor, ids, batches, rows, segments, perm, offsets);
}

}  // namespace baracuda
