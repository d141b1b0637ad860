// The index of segments on a CUDA grid: rows in the order of their ids, by a stable sort over only the
// bits that the number of segments needs, so that rows of a segment stay in order; and where each segment begins.
// Few rows take one kernel: those of several batches by a block for each that sorts in shared memory, those of
// few batches by a block for each range of segments. A medium number takes two kernels. Others are sorted together, by
// keys that begin with the batch.
// There is one order, so all give the same index.
#pragma once

#include <algorithm>

#include "key_sort_cuda.h"
#include "segment_index_parts_cuda.h"
#include "segment_index_ranges_cuda.h"
#include "sort_block_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int index_block = 256;

// Blocks along the offsets of a batch, by batches.
inline dim3 offset_blocks(int64_t batches, int64_t segments) {
  return dim3(unsigned(ceil_div(segments + 1, index_block)), unsigned(std::min<int64_t>(batches, 65535)));
}

// How many sorted keys are less than a value, for each half of a warp, which asks at 16 positions at a time.
template <class Key>
__device__ uint32_t count_less_by_half_warp(const Key* keys, uint32_t count, int64_t value) {
  uint32_t lane = threadIdx.x % 32, low = 0, high = count;
  while (__any_sync(~0u, low < high)) {
    uint32_t step = (high - low + 15) / 16, at = low + lane % 16 * step;
    uint32_t less = __ballot_sync(~0u, at < high && int64_t(keys[at]) < value);
    uint32_t steps = __popc(less >> (lane & 16) & 0xffff);
    high = steps == 0 ? low : min(high, low + steps * step);
    low += steps == 0 ? 0 : (steps - 1) * step + 1;
  }
  return low;
}

// offsets[batch, s] = how many of the batch's keys are less than batch * batch_step + s. A batch has fewer than 2^32.
template <class Key>
__global__ void __launch_bounds__(index_block)
    segment_offsets(const Key* keys, int64_t batches, int64_t rows, int64_t segments, int64_t batch_step,
                    uint32_t* offsets) {
  int64_t segment = int64_t(blockIdx.x) * index_block + threadIdx.x;
  int lane = threadIdx.x % 32;
  for (int64_t batch = blockIdx.y; batch < batches; batch += gridDim.y) {
    const Key* mine = keys + batch * rows;
    int64_t value = batch * batch_step + segment;
    // First those of the warp's first segment and of the one after its last.
    uint32_t ends = count_less_by_half_warp(mine, uint32_t(rows), value - lane + (lane < 16 ? 0 : 32));
    uint32_t low = __shfl_sync(~0u, ends, 0), high = max(low, __shfl_sync(~0u, ends, 16));
    for (uint32_t left = high - low; left > 0;) {  // without branches: all searches have the same length
      uint32_t half = left / 2;
      if (int64_t(mine[low + half]) < value) low += left - half;
      left = half;
    }
    if (segment <= segments) offsets[batch * (segments + 1) + segment] = low;
  }
}

// How many bits the numbers up to `last` have, at least one.
inline int bits_up_to(int64_t last) {
  int bits = 1;
  while (last >> bits) ++bits;
  return bits;
}

template <class Key, class Id>
Status sort_segments(const Executor& executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments,
                     uint32_t* perm, uint32_t* offsets) {
  int bits = bits_up_to(batches * (segments + 1) - 1);
  Key* keys = nullptr;
  SegmentKeys<Id, Key> source{ids, batches, rows, segments};
  if (rows > 0)
    if (Status status = sort_keys(executor, source, batches * rows, bits, keys, perm); !status.ok()) return status;
  segment_offsets<<<offset_blocks(batches, segments), index_block, 0, executor.stream>>>(keys, batches, rows, segments,
                                                                                         segments + 1, offsets);
  return launched();
}

// The most rows, and segments, of a batch that a block indexes.
inline constexpr int64_t most_indexed_by_block = 16384;

// A block takes about as long for few rows as for `few_rows_of_batch`. As long as all blocks run at once, that does not
// matter; more of them would take longer than one sort of all batches.
inline bool is_indexed_by_blocks(int64_t batches, int64_t rows, int64_t segments) {
  constexpr int64_t few_rows_of_batch = 512, most_idle_blocks = 2048;
  return rows <= most_indexed_by_block && segments <= most_indexed_by_block &&
         (rows >= few_rows_of_batch || batches <= most_idle_blocks);
}

// Writes where each segment begins, by all threads of a block. `segment_at(position)` is the segment of a sorted row.
// All segments after that of the preceding row, up to its own, begin at a row's position.
template <class SegmentAt>
__device__ void write_offsets(int rows, int segments, uint32_t* offsets, const SegmentAt& segment_at) {
  constexpr int few = 4;
  int lane = threadIdx.x % 32;
  for (int first = int(threadIdx.x) - lane; first <= rows; first += int(blockDim.x)) {
    int position = first + lane, begin = 0, end = 0;
    if (position <= rows) {
      begin = position > 0 ? segment_at(position - 1) + 1 : 0;
      end = position < rows ? segment_at(position) + 1 : segments + 1;
    }
#pragma unroll
    for (int k = 0; k < few; ++k)
      if (begin + k < end) offsets[begin + k] = uint32_t(position);
    // Many empty segments would keep one lane busy: the warp writes them together.
    for (uint32_t left = __ballot_sync(~0u, end - begin > few); left; left &= left - 1) {
      int of_lane = __ffs(left) - 1, from = __shfl_sync(~0u, begin, of_lane), to = __shfl_sync(~0u, end, of_lane);
      for (int segment = from + few + lane; segment < to; segment += 32) offsets[segment] = uint32_t(first + of_lane);
      __syncwarp();
    }
  }
}

template <class Sort, class Id>
__global__ void __launch_bounds__(Sort::threads)
    index_by_blocks(SegmentKeys<Id, typename Sort::Key> source, int bits, uint32_t* perm, uint32_t* offsets) {
  using Key = typename Sort::Key;
  extern __shared__ __align__(16) char memory[];
  Sort& sort = *reinterpret_cast<Sort*>(memory);
  int rows = int(source.rows), segments = int(source.segments), steps = Sort::steps_for(rows);
  for (int64_t batch = blockIdx.x; batch < source.batches; batch += gridDim.x) {
    constexpr int ahead = 8;
    for (int first = threadIdx.x; first < steps * Sort::threads; first += ahead * Sort::threads) {
      Id ids[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (int i = first + k * Sort::threads; i < rows) ids[k] = source.ids[batch * rows + i];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (int i = first + k * Sort::threads; i < steps * Sort::threads)
          sort.keys[i] = i < rows ? source.segment(ids[k]) : Key(~Key(0));
    }
    __syncthreads();
    sort.sort(steps, bits);
    for (int i = threadIdx.x; i < rows; i += Sort::threads) perm[batch * rows + i] = sort.order[i];
    write_offsets(rows, segments, offsets + batch * (segments + 1),
                  [&](int position) { return int(sort.keys[sort.order[position]]); });
    __syncthreads();
  }
}

template <int threads, int items, class Id>
Status index_by(const Executor& executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments,
                uint32_t* perm, uint32_t* offsets) {
  using Sort = RowSort<uint16_t, threads, items>;
  auto kernel = index_by_blocks<Sort, Id>;
  if (Status status = allow_shared_memory(kernel, sizeof(Sort)); !status.ok()) return status;
  SegmentKeys<Id, uint16_t> source{ids, batches, rows, segments};
  kernel<<<grid_of(batches), threads, sizeof(Sort), executor.stream>>>(source, bits_up_to(segments), perm, offsets);
  return launched();
}

template <class Id>
Status index_small_batches(const Executor& executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments,
                           uint32_t* perm, uint32_t* offsets) {
  if (rows <= 1024) return index_by<128, 8>(executor, ids, batches, rows, segments, perm, offsets);
  if (rows <= 4096) return index_by<512, 8>(executor, ids, batches, rows, segments, perm, offsets);
  return index_by<512, 32>(executor, ids, batches, rows, segments, perm, offsets);
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
  if (internal::is_indexed_by_parts(batches, rows, segments))
    return internal::index_by_parts(executor, ids, batches, rows, segments, perm, offsets);
  if (internal::is_indexed_by_ranges(batches, rows, segments))
    return internal::index_by_ranges(executor, ids, batches, rows, segments, perm, offsets);
  if (internal::is_indexed_by_blocks(batches, rows, segments))
    return internal::index_small_batches(executor, ids, batches, rows, segments, perm, offsets);
  if (batches * (segments + 1) <= int64_t(1) << 32)
    return internal::sort_segments<uint32_t>(executor, ids, batches, rows, segments, perm, offsets);
  return internal::sort_segments<uint64_t>(executor, ids, batches, rows, segments, perm, offsets);
}

}  // namespace baracuda
