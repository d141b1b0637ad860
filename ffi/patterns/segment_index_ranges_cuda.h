// The index of segments in one kernel, for few batches of rows that fit a block: a block for each range of segments. It
// reads all ids of its batch. Those of segments before its range say where its rows begin; those of its own are listed,
// a part of the ids by each warp, counted and placed in order. No block waits for another.
#pragma once

#include <algorithm>

#include <cub/block/block_scan.cuh>

#include "segment_keys_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int range_threads = 1024, range_warps = range_threads / 32;
inline constexpr int64_t most_in_ranges = 32768, most_of_range = 512;  // rows of a batch, segments of a range

// In shared memory. What a warp has in its part of the ids: a list of its rows, and how many there are of each segment,
// and of none.
struct RangeMemory {
  using Scan = cub::BlockScan<uint32_t, range_threads>;
  typename Scan::TempStorage scan;
  uint32_t earlier[range_warps];  // rows of segments before the range
  uint32_t first[1];              // lists, then counts

  static size_t bytes(int rows_of_warp, int segments) {
    return sizeof(RangeMemory) + sizeof(uint32_t) * size_t(range_warps) * (rows_of_warp + segments + 1);
  }
};

// What a warp does.
template <class Id>
struct RangePart {
  static constexpr uint32_t base = 2 * most_of_range;  // an entry is a row of the part, times this, and its segment
  SegmentKeys<Id, uint32_t> keys;
  const Id* ids;
  uint32_t rows, first_segment, segments;
  uint32_t *list, *counts;
  uint32_t listed = 0;

  // Lists the rows of the range, and returns how many of the lane's rows are of segments before.
  __device__ uint32_t read() {
    constexpr int ahead = 8;
    uint32_t lane = threadIdx.x % 32, earlier = 0;
    for (uint32_t first = lane; first < rows + lane; first += 32 * ahead) {
      Id next[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k * 32 < rows) next[k] = ids[first + k * 32];
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        uint32_t row = first + k * 32, segment = row < rows ? keys.segment(next[k]) - first_segment : segments;
        earlier += int32_t(segment) < 0;
        bool is_ours = segment < segments;
        uint32_t ours = __ballot_sync(~0u, is_ours);
        if (ours == 0) continue;
        if (is_ours) list[listed + __popc(ours & ((1u << lane) - 1))] = row * base + segment;
        listed += __popc(ours);
      }
    }
    __syncwarp();
    return earlier;
  }

  // Calls visit(row, segment, rank) for the rows, in order: `rank` is what the segment's count was, which one more is
  // added to.
  template <class Visit>
  __device__ void each(const Visit& visit) const {
    uint32_t lane = threadIdx.x % 32;
    for (uint32_t first = 0; first < listed; first += 32) {
      bool is_row = first + lane < listed;
      uint32_t entry = is_row ? list[first + lane] : segments, segment = entry % base;
      uint32_t same = __match_any_sync(~0u, segment), lower = same & ((1u << lane) - 1), count = counts[segment];
      __syncwarp();
      if (lower == 0) counts[segment] = count + __popc(same);
      __syncwarp();
      if (is_row) visit(entry / base, segment, count + __popc(lower));
    }
  }
};

// perm [batches, rows], offsets [batches, segments + 1]. Rows of no segment are those of one more, the last.
template <class Id>
__global__ void __launch_bounds__(range_threads)
    index_ranges(SegmentKeys<Id, uint32_t> keys, int rows_of_warp, int range, uint32_t* perm, uint32_t* offsets) {
  extern __shared__ __align__(16) char shared[];
  RangeMemory& memory = *reinterpret_cast<RangeMemory*>(shared);
  int warp = threadIdx.x / 32, mine = threadIdx.x, all = int(keys.segments) + 1;
  int first_segment = int(blockIdx.x) * range, segments = min(range, all - first_segment), width = segments + 1;
  int from = min(int(keys.rows), warp * rows_of_warp), rows = min(int(keys.rows) - from, rows_of_warp);
  uint32_t* counts = memory.first + range_warps * rows_of_warp;
  for (int64_t batch = blockIdx.y; batch < keys.batches; batch += gridDim.y) {
    for (int i = threadIdx.x; i < range_warps * width; i += range_threads) counts[i] = 0;
    __syncthreads();
    RangePart<Id> part{keys,
                       keys.ids + batch * keys.rows + from,
                       uint32_t(rows),
                       uint32_t(first_segment),
                       uint32_t(segments),
                       memory.first + warp * rows_of_warp,
                       counts + warp * width};
    uint32_t earlier = __reduce_add_sync(~0u, part.read());
    if (threadIdx.x % 32 == 0) memory.earlier[warp] = earlier;
    part.each([](uint32_t, uint32_t, uint32_t) {});
    __syncthreads();
    // What a warp has of a segment becomes where its first row is.
    uint32_t here = 0, begin;
    if (mine < segments)
      for (int w = 0; w < range_warps; ++w) here += counts[w * width + mine];
    RangeMemory::Scan(memory.scan).ExclusiveSum(here, begin);
    for (int w = 0; w < range_warps; ++w) begin += memory.earlier[w];
    if (mine < segments) {
      offsets[batch * all + first_segment + mine] = begin;
      for (int w = 0; w < range_warps; ++w) {
        uint32_t of_warp = counts[w * width + mine];
        counts[w * width + mine] = begin;
        begin += of_warp;
      }
    }
    __syncthreads();
    uint32_t* ordered = perm + batch * keys.rows;
    part.each([&](uint32_t row, uint32_t, uint32_t rank) { ordered[rank] = from + row; });
    __syncthreads();
  }
}

// Below, a block of fewer threads is faster; above, a block for each batch, or one sort. All multiprocessors have a
// block.
inline bool is_indexed_by_ranges(int64_t batches, int64_t rows, int64_t segments) {
  constexpr int64_t least_rows = 1024, most_batches = 16, most_segments = 1 << 17;
  return rows >= least_rows && rows <= most_in_ranges && batches <= most_batches && segments <= most_segments;
}

template <class Id>
Status index_by_ranges(const Executor& executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments,
                       uint32_t* perm, uint32_t* offsets) {
  constexpr int64_t wanted_blocks = 132;
  int64_t wanted = std::max<int64_t>(1, wanted_blocks / batches);
  int range = int(std::min(most_of_range, ceil_div(segments + 1, wanted))),
      rows_of_warp = int(ceil_div(rows, range_warps));
  auto kernel = index_ranges<Id>;
  size_t bytes = RangeMemory::bytes(rows_of_warp, range);
  if (Status status = allow_shared_memory(kernel, RangeMemory::bytes(most_in_ranges / range_warps, most_of_range));
      !status.ok())
    return status;
  dim3 grid(unsigned(ceil_div(segments + 1, range)), unsigned(batches));
  kernel<<<grid, range_threads, bytes, executor.stream>>>({ids, batches, rows, segments}, rows_of_warp, range, perm,
                                                          offsets);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
