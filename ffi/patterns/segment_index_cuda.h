// The index of segments on a CUDA grid: rows in the order of their ids, by a stable sort over only the
// bits that the number of segments needs, so that rows of a segment stay in order; and where each segment begins.
#pragma once

#include <algorithm>

#include "key_sort_cuda.h"
#include "segment.h"

namespace baracuda {
namespace internal {

inline constexpr int index_block = 256;

// Blocks along the offsets of a batch, by batches.
inline dim3 offset_blocks(int64_t batches, int64_t segments) {
  return dim3(unsigned(ceil_div(segments + 1, index_block)), unsigned(std::min<int64_t>(batches, 65535)));
}

// The sort key of a row: its batch and its segment, rows of no segment last in their batch.
template <class Id, class KeyType>
struct SegmentKeys {
  using Key = KeyType;
  const Id* ids;
  int64_t batches, rows, segments;

  __device__ int64_t batch(int64_t i) const { return batches == 1 ? 0 : i / rows; }
  __device__ uint32_t number(int64_t i) const { return uint32_t(i - batch(i) * rows); }
  __device__ Key key(int64_t i) const {
    Id id = ids[i];
    bool inside = id >= 0 && int64_t(id) < segments;
    return Key(batch(i) * (segments + 1)) + Key(inside ? id : segments);
  }
};

// offsets[batch, s] = how many of the batch's keys are less than batch * batch_step + s. A batch has fewer than 2^32.
template <class Key>
__global__ void __launch_bounds__(index_block)
    segment_offsets(const Key* keys, int64_t batches, int64_t rows, int64_t segments, int64_t batch_step,
                    uint32_t* offsets) {
  int64_t segment = int64_t(blockIdx.x) * index_block + threadIdx.x;
  if (segment > segments) return;
  for (int64_t batch = blockIdx.y; batch < batches; batch += gridDim.y) {
    const Key* mine = keys + batch * rows;
    int64_t value = batch * batch_step + segment;
    uint32_t low = 0;
    for (uint32_t left = uint32_t(rows); left > 0;) {  // without branches: all searches have the same length
      uint32_t half = left / 2;
      if (int64_t(mine[low + half]) < value) low += left - half;
      left = half;
    }
    offsets[batch * (segments + 1) + segment] = low;
  }
}

template <class Key, class Id>
Status sort_segments(const Executor& executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments,
                     uint32_t* perm, uint32_t* offsets) {
  int bits = 1;
  while ((batches * (segments + 1) - 1) >> bits) ++bits;
  Key* keys = nullptr;
  SegmentKeys<Id, Key> source{ids, batches, rows, segments};
  if (rows > 0)
    if (Status status = sort_keys(executor, source, batches * rows, bits, keys, perm); !status.ok()) return status;
  segment_offsets<<<offset_blocks(batches, segments), index_block, 0, executor.stream>>>(keys, batches, rows, segments,
                                                                                         segments + 1, offsets);
  return launched();
}

}  // namespace internal

template <class Id>
Status index_segments(const Executor& executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments,
                      uint32_t* perm, uint32_t* offsets) {
  if (batches == 0) return {};
  if (perm == nullptr) {
    using namespace internal;
    segment_offsets<<<offset_blocks(batches, segments), index_block, 0, executor.stream>>>(ids, batches, rows, segments,
                                                                                           0, offsets);
    return launched();
  }
  if (batches * (segments + 1) <= int64_t(1) << 32)
    return internal::sort_segments<uint32_t>(executor, ids, batches, rows, segments, perm, offsets);
  return internal::sort_segments<uint64_t>(executor, ids, batches, rows, segments, perm, offsets);
}

}  // namespace baracuda
