// The index of a medium number of rows in two kernels. Segments are cut into buckets, which are ranges of them. The
// first kernel sorts each tile of rows by bucket, and says where each bucket begins in it. In the second a block has a
// bucket: it finds its rows, tile by tile and so in order, counts those of each segment, and writes them. How many rows
// of a tile are in earlier buckets says where the bucket's begin, so that nothing waits for another block. Of a bucket
// with many rows other blocks have chunks: each counts the rows of the whole bucket, which is fast in any order, and
// writes its own.
#pragma once

#include <algorithm>

#include "early_cuda.h"
#include "segment_index_ranges_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int part_rows = 1024, part_threads = 256, part_warps = part_threads / 32,
                     part_steps = part_rows / part_threads, most_parts = 128, most_buckets = 256;

// Fixed by the shapes of a batch.
struct PartGrid {
  int tiles;         // of part_rows rows, the last one of fewer
  int buckets;       // of all segments, and of one more for rows of none
  int range;         // segments of a bucket, at least 2, at most most_of_range
  uint32_t inverse;  // of the range, times 2^32

  // Exact: segments are below 2^18, and inverse * range is at most `range` more than 2^32.
  __device__ uint32_t bucket(uint32_t segment) const { return __umulhi(segment, inverse); }
};

inline PartGrid part_grid(int64_t rows, int64_t segments) {
  constexpr int64_t few_segments = 1 << 15, few_buckets = 128;
  PartGrid grid;
  grid.tiles = int(ceil_div(rows, part_rows));
  int64_t wanted = segments < few_segments ? few_buckets : most_buckets;
  grid.range = int(std::max<int64_t>(2, ceil_div(segments + 1, wanted)));
  grid.buckets = int(ceil_div(segments + 1, grid.range));
  grid.inverse = uint32_t((uint64_t(1) << 32) / uint64_t(grid.range)) + 1;
  return grid;
}

// Fewer rows are indexed by ranges, faster; more would be more tiles than a block has a look at, and for few segments
// blocks would be few.
inline bool is_indexed_by_parts(int64_t batches, int64_t rows, int64_t segments) {
  constexpr int64_t least_rows = 1 << 14, most_batches = 16, least_segments = 16, most_segments = 1 << 17;
  return rows > least_rows && rows <= most_parts * part_rows && batches <= most_batches && segments >= least_segments &&
         segments < most_segments;
}

// How many of the lanes before have the same number, and whether the lane is the first; all lanes of the warp take
// part.
struct SameLanes {
  uint32_t count, before;
  bool is_first;

  __device__ explicit SameLanes(uint32_t number) {
    uint32_t same = ~0u, lane = threadIdx.x % 32;
    if (!__all_sync(~0u, number == __shfl_sync(~0u, number, 0))) same = __match_any_sync(~0u, number);
    uint32_t lower = same & ((1u << lane) - 1);
    count = __popc(same), before = __popc(lower), is_first = lower == 0;
  }
};

// entries [batches, tiles, part_rows]: of the rows of a tile, in the order of their buckets, the segment in its bucket,
// times part_rows, and the row in its tile. begins [batches, buckets + 1, tiles]: where each bucket begins there.
template <class Id>
__global__ void __launch_bounds__(part_threads)
    index_tiles(SegmentKeys<Id, uint32_t> keys, PartGrid grid, uint32_t* entries, uint32_t* begins) {
  using Scan = cub::BlockScan<uint32_t, part_threads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ uint32_t counts[part_warps][most_buckets], sorted[part_rows];
  static_assert(most_buckets == part_threads);
  next_may_begin();
  int tile = int(blockIdx.x), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t batch = blockIdx.y;
  int rows = min(int(keys.rows) - tile * part_rows, part_rows), first = warp * 32 * part_steps + lane;
  const Id* ids = keys.ids + batch * keys.rows + int64_t(tile) * part_rows;
  Id next[part_steps];
#pragma unroll
  for (int k = 0; k < part_steps; ++k)
    if (first + k * 32 < rows) next[k] = ids[first + k * 32];
  for (int w = 0; w < part_warps; ++w) counts[w][threadIdx.x] = 0;
  __syncthreads();
  uint32_t segments[part_steps], buckets[part_steps], ranks[part_steps];
#pragma unroll
  for (int k = 0; k < part_steps; ++k) {
    bool is_row = first + k * 32 < rows;
    segments[k] = is_row ? keys.segment(next[k]) : 0;
    buckets[k] = is_row ? grid.bucket(segments[k]) : most_buckets;
    SameLanes same(buckets[k]);
    uint32_t count = is_row ? counts[warp][buckets[k]] : 0;
    __syncwarp();
    if (is_row && same.is_first) counts[warp][buckets[k]] = count + same.count;
    __syncwarp();
    ranks[k] = count + same.before;
  }
  __syncthreads();
  uint32_t here = 0, position;
  for (int w = 0; w < part_warps; ++w) here += counts[w][threadIdx.x];
  Scan(scan).ExclusiveSum(here, position);
  if (int(threadIdx.x) < grid.buckets) {
    uint32_t* to = begins + (batch * (grid.buckets + 1) + threadIdx.x) * grid.tiles + tile;
    *to = position;
    if (int(threadIdx.x) == grid.buckets - 1) to[grid.tiles] = uint32_t(rows);
  }
  for (int w = 0; w < part_warps; ++w) {
    uint32_t of_warp = counts[w][threadIdx.x];
    counts[w][threadIdx.x] = position, position += of_warp;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < part_steps; ++k)
    if (first + k * 32 < rows)
      sorted[counts[warp][buckets[k]] + ranks[k]] =
          (segments[k] - buckets[k] * grid.range) * part_rows + uint32_t(first + k * 32);
  __syncthreads();
  uint32_t* to = entries + (batch * grid.tiles + tile) * part_rows;
  for (int i = threadIdx.x; i < rows; i += part_threads) to[i] = sorted[i];
}

inline constexpr int bucket_threads = 512, bucket_warps = bucket_threads / 32;
inline constexpr uint32_t rows_of_chunk = 4096;  // of a bucket, at most
// Counts of a bucket's segments: of the rows before a chunk, of those of each warp, of those after; as many as are
// visited together.
inline constexpr int count_rows = bucket_warps + 8, counts_before = 0, counts_after = bucket_warps + 1;

// What a block knows of its bucket.
struct BucketMemory {
  using SumScan = cub::BlockScan<uint64_t, bucket_threads>;
  using Scan = cub::BlockScan<uint32_t, bucket_threads>;
  union {
    typename SumScan::TempStorage of_sums;
    typename Scan::TempStorage of_segments;
  };
  int bucket, chunk;
  uint32_t first[most_parts + 1];     // where the rows of each tile begin, among those of the bucket
  uint32_t from[most_parts];          // added to such a number, the entry's position
  uint32_t list[rows_of_chunk];       // entries
  uint16_t ranks[rows_of_chunk];      // of those, among their segment's of the warp
  uint32_t before[most_buckets + 1];  // rows of the buckets before
  uint32_t counts[1];

  static size_t bytes(int range) { return sizeof(BucketMemory) + sizeof(uint32_t) * size_t(count_rows) * (range + 1); }
};

// A lane's way through the rows of a bucket, in order.
struct BucketRows {
  static constexpr uint32_t base = most_of_range;
  static_assert(uint64_t(most_parts) * part_rows * base <= uint64_t(1) << 32);
  const BucketMemory& memory;
  const uint32_t* entries;
  uint32_t tile;

  // The last tile whose rows do not begin after the i-th.
  __device__ BucketRows(const BucketMemory& memory, const uint32_t* entries, int tiles, uint32_t i)
      : memory(memory), entries(entries), tile(0) {
#pragma unroll
    for (uint32_t step = most_parts / 2; step > 0; step /= 2)
      if (int(tile + step) < tiles && memory.first[tile + step] <= i) tile += step;
  }
  // The entries of rows from the i-th on, 32 rows apart, and their positions; not before what has been asked for. Loads
  // under conditions would wait for each other: those after the last row are of the last.
  template <int count>
  __device__ void read(uint32_t i, uint32_t last, uint32_t (&positions)[count], uint32_t (&found)[count]) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      uint32_t at = min(i + k * 32, last);
      while (memory.first[tile + 1] <= at) ++tile;
      positions[k] = memory.from[tile] + at;
    }
#pragma unroll
    for (int k = 0; k < count; ++k) found[k] = entries[positions[k]];
  }
  static __device__ uint32_t segment(uint32_t entry) { return entry / part_rows; }
  // Tiles begin at multiples of part_rows.
  static __device__ uint32_t row(uint32_t position, uint32_t entry) {
    return position / part_rows * part_rows + entry % part_rows;
  }
};

// The bucket and the number of the k-th chunk that is no bucket's first; no bucket where there are fewer.
__device__ inline void find_chunk(BucketMemory& memory, const PartGrid& grid, const uint32_t* begins, int k) {
  int lane = threadIdx.x % 32, bucket = int(threadIdx.x);
#pragma unroll 4
  for (int i = threadIdx.x / 32; i <= grid.buckets; i += bucket_warps) {
    uint32_t sum = 0;
#pragma unroll
    for (int tile = 0; tile < most_parts; tile += 32)
      if (tile + lane < grid.tiles) sum += begins[i * grid.tiles + tile + lane];
    sum = __reduce_add_sync(~0u, sum);
    if (lane == 0) memory.before[i] = sum;
  }
  if (threadIdx.x == 0) memory.bucket = grid.buckets;
  __syncthreads();
  uint32_t rows = bucket < grid.buckets ? memory.before[bucket + 1] - memory.before[bucket] : 0;
  uint32_t more = rows > 0 ? (rows - 1) / rows_of_chunk : 0, position;
  BucketMemory::Scan(memory.of_segments).ExclusiveSum(more, position);
  if (uint32_t(k) - position < more) memory.bucket = bucket, memory.chunk = k - int(position) + 1;
  __syncthreads();
}

template <class Id>
__global__ void __launch_bounds__(bucket_threads)
    index_buckets(PartGrid grid, int64_t rows, int64_t segments, const uint32_t* entries, const uint32_t* begins,
                  uint32_t* perm, uint32_t* offsets) {
  constexpr int ahead = 4, many_ahead = 8;
  extern __shared__ __align__(16) char shared[];
  auto& memory = *reinterpret_cast<BucketMemory*>(shared);
  wait_for_kernel_before();
  int64_t batch = blockIdx.y;
  begins += batch * (grid.buckets + 1) * grid.tiles;
  entries += batch * grid.tiles * part_rows;
  int bucket = int(blockIdx.x), chunk = 0;
  if (bucket >= grid.buckets) {
    find_chunk(memory, grid, begins, bucket - grid.buckets);
    bucket = memory.bucket, chunk = memory.chunk;
    if (bucket == grid.buckets) return;
  }
  int first_segment = bucket * grid.range, count = min(grid.range, int(segments) + 1 - first_segment),
      width = count + 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = threadIdx.x;
  begins += bucket * grid.tiles;
  // In the upper half of the sum those of the tiles' rows that are in buckets before.
  uint32_t begin = 0, end = 0;
  if (tile < grid.tiles) begin = begins[tile], end = begins[grid.tiles + tile];
  uint64_t position, total;
  BucketMemory::SumScan(memory.of_sums).ExclusiveSum(uint64_t(begin) << 32 | (end - begin), position, total);
  if (tile < grid.tiles) {
    memory.first[tile] = uint32_t(position);
    memory.from[tile] = uint32_t(tile * part_rows) + begin - uint32_t(position);
  }
  uint32_t before = uint32_t(total >> 32), all = uint32_t(total);
  if (threadIdx.x == 0) memory.first[grid.tiles] = all;
  for (int i = threadIdx.x; i < count_rows * width; i += bucket_threads) memory.counts[i] = 0;
  __syncthreads();

  // Each warp has neighboring rows of the chunk.
  uint32_t chunk_begin = min(uint32_t(chunk) * rows_of_chunk, all), chunk_end = min(chunk_begin + rows_of_chunk, all);
  uint32_t each = (chunk_end - chunk_begin + bucket_threads - 1) / bucket_threads * 32,
           from = min(chunk_begin + warp * each, chunk_end), to = min(from + each, chunk_end);
  uint32_t* counts = memory.counts + (1 + warp) * width;
  // Adds up the rows [from, to) of the bucket, which no chunk of this block's is in.
  auto add_up = [&](uint32_t from, uint32_t to, uint32_t* counts) {
    uint32_t each = (to - from + bucket_threads - 1) / bucket_threads * 32, mine = min(from + warp * each, to),
             last = min(mine + each, to);
    BucketRows rows_there(memory, entries, grid.tiles, min(mine + lane, last - 1));
    for (uint32_t i = mine + lane; i < last + lane; i += 32 * many_ahead) {
      uint32_t positions[many_ahead], next[many_ahead];
      rows_there.read(i, last - 1, positions, next);
#pragma unroll
      for (int k = 0; k < many_ahead; ++k) {
        if (i + k * 32 - lane >= last) continue;  // of no lane
        uint32_t segment = i + k * 32 < last ? BucketRows::segment(next[k]) : uint32_t(count);
        if (!__all_sync(~0u, segment == __shfl_sync(~0u, segment, 0)))
          atomicAdd(&counts[segment], 1u);  // of a constant, which is faster than of 1 or 32
        else if (lane == 0)
          atomicAdd(&counts[segment], 32u);
      }
    }
  };
  add_up(0, chunk_begin, memory.counts + counts_before * width);
  add_up(chunk_end, all, memory.counts + counts_after * width);
  BucketRows rows_here(memory, entries, grid.tiles, min(from + lane, to - 1));
  for (uint32_t i = from + lane; i < to + lane; i += 32 * ahead) {
    uint32_t positions[ahead], next[ahead];
    rows_here.read(i, to - 1, positions, next);
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      uint32_t at = i + k * 32;
      if (at - lane >= to) continue;  // of no lane
      bool is_row = at < to;
      uint32_t segment = is_row ? BucketRows::segment(next[k]) : uint32_t(count);
      SameLanes same(segment);
      uint32_t so_far = counts[segment];
      __syncwarp();
      if (same.is_first) counts[segment] = so_far + same.count;
      __syncwarp();
      if (is_row) {
        memory.list[at - chunk_begin] = BucketRows::row(positions[k], next[k]) * BucketRows::base + segment;
        memory.ranks[at - chunk_begin] = so_far + same.before;
      }
    }
  }
  __syncthreads();
  uint32_t* begins_of = offsets + batch * (segments + 1) + first_segment;
  begin_segments<count_rows>(BucketMemory::Scan(memory.of_segments), memory.counts, count,
                             [&](int i, uint32_t at, uint32_t) {
                               if (chunk == 0) begins_of[i] = before + at;
                             });
  __syncthreads();
  uint32_t* ordered = perm + batch * rows + before;
  for (uint32_t i = from - chunk_begin + lane; i < to - chunk_begin; i += 32) {
    uint32_t entry = memory.list[i];
    ordered[counts[entry % BucketRows::base] + memory.ranks[i]] = entry / BucketRows::base;
  }
}

template <class Id>
Status index_by_parts(Executor executor, const Id* ids, int64_t batches, int64_t rows, int64_t segments, uint32_t* perm,
                      uint32_t* offsets) {
  PartGrid grid = part_grid(rows, segments);
  uint32_t *entries = executor.scratch<uint32_t>(batches * grid.tiles * part_rows),
           *begins = executor.scratch<uint32_t>(batches * (grid.buckets + 1) * grid.tiles);
  if (!entries || !begins) return small_workspace;
  index_tiles<<<dim3(unsigned(grid.tiles), unsigned(batches)), part_threads, 0, executor.stream>>>(
      SegmentKeys<Id, uint32_t>{ids, batches, rows, segments}, grid, entries, begins);
  if (Status status = launched(); !status.ok()) return status;
  auto kernel = index_buckets<Id>;
  size_t bytes = BucketMemory::bytes(grid.range);
  if (Status status = allow_dynamic_memory(kernel, bytes); !status.ok()) return status;
  unsigned blocks = unsigned(grid.buckets + rows / rows_of_chunk);  // no more chunks are no bucket's first
  return launch_early(executor, kernel, dim3(blocks, unsigned(batches)), bucket_threads, bytes, grid, rows, segments,
                      entries, begins, perm, offsets);
}

}  // namespace internal
}  // namespace baracuda
