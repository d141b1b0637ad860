// The index of few rows, by a block for each range of segments. It reads all ids of its batch. Those of segments before
// its range say where its rows begin; those of its own are listed, a part of the ids by each warp, counted and placed
// in order. No block waits for another.
#pragma once

#include <algorithm>

#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_scan.cuh>

#include "segment_keys_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t most_in_ranges = 32768, most_of_range = 512;  // rows of a batch, segments of a range

// In shared memory. What a warp has in its part of the ids: a list of its rows, and how many there are of each segment,
// and of none.
template <int threads>
struct RangeMemory {
  static constexpr int warps = threads / 32;
  using Scan = cub::BlockScan<uint32_t, threads>;
  using WarpScan = cub::WarpScan<uint32_t>;
  union {
    typename Scan::TempStorage of_block;
    typename WarpScan::TempStorage of_warp;
  };
  uint32_t earlier[warps];  // rows of segments before the range
  uint32_t first[1];        // lists, then counts

  __device__ uint32_t* counts(int rows_of_warp) { return first + warps * rows_of_warp; }
  static size_t bytes(int rows_of_warp, int segments) {
    return sizeof(RangeMemory) + sizeof(uint32_t) * size_t(warps) * (rows_of_warp + segments + 1);
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

// Each warp's counts of a range's segments become where its first row of each is, among the range's; by as many threads
// as scan, at least one for each segment. Calls begin(i, position, count) for the i-th segment.
template <int warps, class Scan, class Begin>
__device__ void begin_segments(Scan scan, uint32_t* counts, int segments, const Begin& begin) {
  constexpr int together = 8;  // loads on their way
  int mine = threadIdx.x, width = segments + 1;
  uint32_t here = 0, position;
  if (mine < segments)
    for (int w = 0; w < warps; ++w) here += counts[w * width + mine];
  scan.ExclusiveSum(here, position);
  if (mine >= segments) return;
  begin(mine, position, here);
  for (int first = 0; first < warps; first += together) {
    uint32_t of_warp[together];
#pragma unroll
    for (int k = 0; k < together; ++k) of_warp[k] = counts[(first + k) * width + mine];
#pragma unroll
    for (int k = 0; k < together; ++k) counts[(first + k) * width + mine] = position, position += of_warp[k];
  }
}

// By all threads of a block, at least as many as the range has segments: calls begin(i, before, position, count) for
// its i-th segment, and then write(before, position, row) for the rows. Positions are among the range's rows, before
// which so many of the batch's come.
template <int threads, class Id, class Begin, class Write>
__device__ void order_range(RangeMemory<threads>& memory, const SegmentKeys<Id, uint32_t>& keys, int64_t batch,
                            int rows_of_warp, int first_segment, int segments, const Begin& begin, const Write& write) {
  using Memory = RangeMemory<threads>;
  int warp = threadIdx.x / 32, width = segments + 1;
  int from = min(int(keys.rows), warp * rows_of_warp), rows = min(int(keys.rows) - from, rows_of_warp);
  uint32_t* counts = memory.counts(rows_of_warp);
  for (int i = threadIdx.x % 32; i < width; i += 32) counts[warp * width + i] = 0;
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
  uint32_t before = 0;
  for (int w = 0; w < Memory::warps; ++w) before += memory.earlier[w];
  auto begin_here = [&](int segment, uint32_t position, uint32_t count) { begin(segment, before, position, count); };
  if (segments > 32)
    begin_segments<Memory::warps>(typename Memory::Scan(memory.of_block), counts, segments, begin_here);
  else if (warp == 0)
    begin_segments<Memory::warps>(typename Memory::WarpScan(memory.of_warp), counts, segments, begin_here);
  __syncthreads();
  part.each([&](uint32_t row, uint32_t, uint32_t rank) { write(before, rank, from + row); });
  __syncthreads();
}

// perm [batches, rows], offsets [batches, segments + 1]. Rows of no segment are those of one more, the last.
inline constexpr int range_threads = 1024;

template <class Id>
__global__ void __launch_bounds__(range_threads)
    index_ranges(SegmentKeys<Id, uint32_t> keys, int rows_of_warp, int range, uint32_t* perm, uint32_t* offsets) {
  extern __shared__ __align__(16) char shared[];
  auto& memory = *reinterpret_cast<RangeMemory<range_threads>*>(shared);
  int all = int(keys.segments) + 1, first_segment = int(blockIdx.x) * range, segments = min(range, all - first_segment);
  for (int64_t batch = blockIdx.y; batch < keys.batches; batch += gridDim.y) {
    uint32_t *begins = offsets + batch * all + first_segment, *ordered = perm + batch * keys.rows;
    order_range(
        memory, keys, batch, rows_of_warp, first_segment, segments,
        [&](int segment, uint32_t before, uint32_t position, uint32_t) { begins[segment] = before + position; },
        [&](uint32_t before, uint32_t position, uint32_t row) { ordered[before + position] = row; });
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
  using Memory = RangeMemory<range_threads>;
  constexpr int64_t wanted_blocks = 132;
  int64_t wanted = std::max<int64_t>(1, wanted_blocks / batches);
  int range = int(std::min(most_of_range, ceil_div(segments + 1, wanted))),
      rows_of_warp = int(ceil_div(rows, Memory::warps));
  auto kernel = index_ranges<Id>;
  size_t bytes = Memory::bytes(rows_of_warp, range);
  if (Status status = allow_shared_memory(kernel, Memory::bytes(most_in_ranges / Memory::warps, most_of_range));
      !status.ok())
    return status;
  dim3 grid(unsigned(ceil_div(segments + 1, range)), unsigned(batches));
  kernel<<<grid, range_threads, bytes, executor.stream>>>({ids, batches, rows, segments}, rows_of_warp, range, perm,
                                                          offsets);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
