// Rows by buckets of segments, which are ranges of them: as many as blocks that run at a time, so that each of these
// has a bucket. A kernel sorts each tile of rows by bucket, and says where each bucket begins in it and how many rows
// it has in all. A block then finds the rows of its bucket, tile by tile and so in order, and orders them by their
// segments in shared memory.
#pragma once

#include <algorithm>

#include <cub/block/block_scan.cuh>

#include "digit_rank_cuda.h"
#include "segment_blocks_cuda.h"
#include "segment_keys_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int multiprocessors = 132, most_wave_buckets = 4 * multiprocessors, most_of_bucket = 256,
                     tile_threads = 1024, most_bucket_tiles = 128, most_tile_rows = 8192, most_chunk_rows = 3072;

// Fixed by the shapes of a batch, and by how many blocks run at a time. Python computes the size of the workspace from
// the same numbers.
struct BucketGrid {
  int tiles, tile_rows;  // the last tile has fewer; a power of two
  int buckets;           // of all segments, and of one more for rows of none
  int range;             // segments of a bucket, at least 2, at most most_of_bucket
  uint32_t inverse;      // of the range, times 2^32
  int chunk;             // rows that a block orders, at most: of a bucket with more, blocks have chunks
  int slots;             // chunks of all such buckets, at most

  // Exact: segments are below 2^18, and inverse * range is at most `range` more than 2^32.
  __device__ int bucket(uint32_t segment) const { return int(__umulhi(segment, inverse)); }
};

// Of as many rows as leave a bucket few enough, and more than an index takes two kernels for; of enough segments that
// there are buckets for all blocks; and of results as large as what chunks leave may be. Python decides by the
// same numbers.
inline bool is_by_buckets(const SegmentShape& shape) {
  constexpr int64_t least_rows = 1 << 17, most_rows = int64_t(most_bucket_tiles) * most_tile_rows,
                    least_segments = 1 << 10, most_segments = 1 << 17, most_elements = 1 << 25;
  return shape.entries > least_rows && shape.entries <= most_rows && shape.segments >= least_segments &&
         shape.segments <= most_segments && shape.segments * shape.columns <= most_elements;
}

inline BucketGrid bucket_grid(const SegmentShape& shape, int blocks_at_once) {
  constexpr int64_t least_chunk = 512, times_even = 8;
  BucketGrid grid;
  grid.tile_rows = tile_threads;
  while (grid.tile_rows * most_bucket_tiles < shape.entries) grid.tile_rows *= 2;
  grid.tiles = int(ceil_div(shape.entries, grid.tile_rows));
  int64_t keys = shape.segments + 1;
  int wanted =
      blocks_at_once == 3 && keys <= 3 * multiprocessors * most_of_bucket ? 3 * multiprocessors : most_wave_buckets;
  grid.range = int(std::max<int64_t>(2, ceil_div(keys, wanted)));
  grid.buckets = int(ceil_div(keys, grid.range));
  grid.inverse = uint32_t((uint64_t(1) << 32) / uint64_t(grid.range)) + 1;
  grid.chunk =
      int(std::clamp<int64_t>(times_even * ceil_div(shape.entries, most_wave_buckets), least_chunk, most_chunk_rows));
  grid.slots = int(2 * shape.entries / grid.chunk);
  return grid;
}

template <int items>
struct TileMemory {
  using Scan = cub::BlockScan<uint32_t, tile_threads>;
  static constexpr int warps = tile_threads / 32, digits = most_wave_buckets + 16;  // and one for no row
  struct Counts {
    uint32_t masks[warps][digits];
    uint16_t of_warps[warps][digits];
  };
  alignas(16) Counts counts;
  uint32_t sorted[items * tile_threads];
  typename Scan::TempStorage scan;
};

// entries [batches, tiles, tile_rows]: of the rows of a tile, in the order of their buckets, the segment in its bucket,
// times tile_rows, and the row in its tile. begins [batches, buckets + 1, tiles]: where each bucket begins there.
// totals [batches, buckets], zeros before.
template <int items, class Id>
__global__ void __launch_bounds__(tile_threads, 1)
    sort_tiles(SegmentKeys<Id, uint32_t> keys, BucketGrid grid, uint32_t* entries, uint32_t* begins, uint32_t* totals) {
  using Memory = TileMemory<items>;
  constexpr int tile_rows = items * tile_threads;
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<Memory*>(memory);
  auto& counts = shared.counts.of_warps;
  int tile = int(blockIdx.x), lane = threadIdx.x % 32, warp = threadIdx.x / 32, bucket = int(threadIdx.x);
  int64_t batch = blockIdx.y;
  int rows = int(min(keys.rows - int64_t(tile) * tile_rows, int64_t(tile_rows))), first = warp * 32 * items + lane;
  const Id* ids = keys.ids + batch * keys.rows + int64_t(tile) * tile_rows;
  Id next[items];
#pragma unroll
  for (int k = 0; k < items; ++k)
    if (first + k * 32 < rows) next[k] = ids[first + k * 32];
  for (int i = threadIdx.x; i < int(sizeof(shared.counts) / 16); i += tile_threads)
    reinterpret_cast<uint4*>(&shared.counts)[i] = uint4{0, 0, 0, 0};
  __syncthreads();
  uint32_t segments[items];
  int buckets[items], ranks[items];
#pragma unroll
  for (int k = 0; k < items; ++k) {
    bool is_row = first + k * 32 < rows;
    segments[k] = is_row ? keys.segment(next[k]) : 0;
    buckets[k] = is_row ? grid.bucket(segments[k]) : grid.buckets;
    ranks[k] = rank_in_warp(counts[warp], shared.counts.masks[warp], uint32_t(buckets[k]));
  }
  __syncthreads();
  uint32_t here = 0, position;
  if (bucket < grid.buckets)
#pragma unroll
    for (int w = 0; w < Memory::warps; ++w) here += counts[w][bucket];
  typename Memory::Scan(shared.scan).ExclusiveSum(here, position);
  if (bucket < grid.buckets) {
    uint32_t* to = begins + (batch * (grid.buckets + 1) + bucket) * grid.tiles + tile;
    *to = position;
    if (bucket == grid.buckets - 1) to[grid.tiles] = uint32_t(rows);
    if (here > 0) atomicAdd(&totals[batch * grid.buckets + bucket], here);
#pragma unroll
    for (int w = 0; w < Memory::warps; ++w) {
      uint16_t of_warp = counts[w][bucket];
      counts[w][bucket] = uint16_t(position), position += of_warp;
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < items; ++k)
    if (first + k * 32 < rows)
      shared.sorted[counts[warp][buckets[k]] + ranks[k]] =
          (segments[k] - uint32_t(buckets[k] * grid.range)) * tile_rows + uint32_t(first + k * 32);
  __syncthreads();
  uint32_t* to = entries + (batch * grid.tiles + tile) * tile_rows;
  for (int i = threadIdx.x; i < rows; i += tile_threads) to[i] = shared.sorted[i];
}

template <int items, class Id>
Status sort_tiles_by(const Executor& executor, const SegmentKeys<Id, uint32_t>& keys, const BucketGrid& grid,
                     uint32_t* entries, uint32_t* begins, uint32_t* totals) {
  auto kernel = sort_tiles<items, Id>;
  size_t bytes = sizeof(TileMemory<items>);
  if (Status status = allow_dynamic_memory(kernel, bytes); !status.ok()) return status;
  kernel<<<dim3(unsigned(grid.tiles), unsigned(keys.batches)), tile_threads, bytes, executor.stream>>>(
      keys, grid, entries, begins, totals);
  return launched();
}

template <class Id>
Status sort_by_tiles(const Executor& executor, const SegmentKeys<Id, uint32_t>& keys, const BucketGrid& grid,
                     uint32_t* entries, uint32_t* begins, uint32_t* totals) {
  cudaError_t error =
      cudaMemsetAsync(totals, 0, size_t(keys.batches * grid.buckets) * sizeof(uint32_t), executor.stream);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  auto sort = grid.tile_rows == 1 * tile_threads   ? sort_tiles_by<1, Id>
              : grid.tile_rows == 2 * tile_threads ? sort_tiles_by<2, Id>
              : grid.tile_rows == 4 * tile_threads ? sort_tiles_by<4, Id>
                                                   : sort_tiles_by<8, Id>;
  return sort(executor, keys, grid, entries, begins, totals);
}

// What a block knows of its bucket while it orders rows, in shared memory.
struct BucketOrder {
  using Scan = cub::BlockScan<uint32_t, segment_block>;
  static constexpr int warps = segment_block / 32, digits = most_of_bucket + 4;  // and one for no row
  struct Counts {
    uint32_t masks[warps][digits];
    uint16_t of_warps[warps][digits];
  };
  alignas(16) Counts counts;
  uint32_t first[most_bucket_tiles + 1];  // where the rows of each tile begin, among those of the bucket
  uint32_t from[most_bucket_tiles];       // added to such a number, the entry's position
  typename Scan::TempStorage scan;
};

// A bucket's part of a batch's rows.
struct RowsOfBucket {
  static constexpr uint32_t base = 2 * most_of_bucket;
  const BucketGrid& grid;
  int bucket;
  const uint32_t *entries, *begins;  // of the batch
  int segments;                      // of the bucket, with those of no segment

  // Of its rows [begin, begin + count), by all threads of a block, which none has more of than grid.chunk: the offsets
  // of its segments, and of two more, and rows in their order. `write(position, row)` gets
  // these, times base, and with their segments in the bucket.
  template <class Write>
  __device__ void order(BucketOrder& memory, uint32_t begin, uint32_t count, uint32_t* offsets,
                        const Write& write) const {
    constexpr int most_steps = most_chunk_rows / segment_block;
    static_assert(uint64_t(most_bucket_tiles) * most_tile_rows * base <= uint64_t(1) << 32);
    auto& counts = memory.counts.of_warps;
    int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
    uint32_t tile_rows = uint32_t(grid.tile_rows), at = 0, end = 0, position;
    const uint32_t* mine = begins + bucket * grid.tiles;
    if (thread < grid.tiles) at = mine[thread], end = mine[grid.tiles + thread];
    for (int i = thread; i < int(sizeof(memory.counts) / 16); i += segment_block)
      reinterpret_cast<uint4*>(&memory.counts)[i] = uint4{0, 0, 0, 0};
    BucketOrder::Scan(memory.scan).ExclusiveSum(end - at, position);
    if (thread < grid.tiles) memory.first[thread] = position, memory.from[thread] = thread * tile_rows + at - position;
    if (thread == grid.tiles - 1) memory.first[grid.tiles] = position + end - at;
    __syncthreads();

    // Each warp has neighboring rows.
    uint32_t each = (count + segment_block - 1) / segment_block * 32, from = min(warp * each, count),
             to = min(from + each, count), tile = 0;
#pragma unroll
    for (uint32_t step = most_bucket_tiles / 2; step > 0; step /= 2)
      if (int(tile + step) < grid.tiles && memory.first[tile + step] <= begin + from + lane) tile += step;
    uint32_t rows[most_steps], ranks[most_steps];
#pragma unroll
    for (int k = 0; k < most_steps; ++k) {
      uint32_t i = begin + from + lane + k * 32;
      rows[k] = uint32_t(segments);  // of no segment
      if (i >= begin + to) continue;
      while (memory.first[tile + 1] <= i) ++tile;
      uint32_t entry = entries[memory.from[tile] + i];
      rows[k] = (tile * tile_rows + entry % tile_rows) * base + entry / tile_rows;
    }
#pragma unroll
    for (int k = 0; k < most_steps; ++k)
      if (from + k * 32 < to) ranks[k] = rank_in_warp(counts[warp], memory.counts.masks[warp], rows[k] % base);
    __syncthreads();
    uint32_t here = 0;
    if (thread < segments)
#pragma unroll
      for (int w = 0; w < BucketOrder::warps; ++w) here += counts[w][thread];
    BucketOrder::Scan(memory.scan).ExclusiveSum(here, position);
    if (thread < segments) {
      offsets[thread] = position;
#pragma unroll
      for (int w = 0; w < BucketOrder::warps; ++w) {
        uint16_t of_warp = counts[w][thread];
        counts[w][thread] = uint16_t(position), position += of_warp;
      }
    }
    if (thread == 0) offsets[segments] = offsets[segments + 1] = count;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < most_steps; ++k)
      if (from + lane + k * 32 < to) write(counts[warp][rows[k] % base] + ranks[k], rows[k]);
    __syncthreads();
  }
};

}  // namespace internal
}  // namespace baracuda
