// The packed rows pattern on tensor cores, for one row of x in a 16-bit float and one large matrix.
//
// A multiprocessor has one block, which goes through groups of 16 rows, and through eight tiles of such rows at a time,
// a round, one of each chain. Its last warp copies rounds into a ring of stages, in long runs of each row, and adds the
// sums of those that are through. Each other warp takes the next tile that is its own (packed_row_tile_cuda.h).
//
// All warps wait for each round and release each, also where they have no tile of it. A barrier tells by a parity alone
// which phase has ended, so no warp may be more than a phase late.
//
// Factors that are arrays are read with x, a tile ahead.
//
// The order of sums is that of packed_rows_mma_cuda.h, and so are the bits: groups, by halves, tiles of a chain, and
// chains by halves.
#pragma once

#include "copy_bulk_cuda.h"
#include "keep_cuda.h"
#include "packed_row_direct_cuda.h"
#include "packed_row_tile_cuda.h"
#include "packed_rows.h"
#include "packed_rows_mma_cuda.h"
#include "shared_memory_cuda.h"

#include <algorithm>

namespace baracuda {
namespace internal {

// Warps that multiply. Each has at most one tile of a round.
inline constexpr int packed_ring_warps = 15, packed_ring_threads = 32 * (packed_ring_warps + 1);
static_assert(packed_ring_warps >= packed_chains);

// What a stage has: rows, which begin up to `most_past` bytes after a multiple of 16, and four sums of each row of a
// tile.
template <class Format>
struct PackedRound {
  using Tile = PackedMmaMemory<Format, 1, 1>;
  static constexpr int round_bytes = packed_chains * Tile::tile_bytes;
  // An odd number of 16 bytes: the same bytes of eight rows are in different banks.
  static constexpr int row_room = 16 * ((Tile::most_past + round_bytes + 15) / 16 | 1), rows = 16 * row_room;
  static constexpr int bytes = rows + packed_chains * 16 * int(sizeof(float4));
};

// Of four to six stages that were measured the most took least, by up to 3%; so as many as there is memory for.
template <class Format>
inline constexpr int packed_ring_stages = std::min(6, (190 << 10) / PackedRound<Format>::bytes);

template <class Format>
inline constexpr int packed_ring_bytes = packed_ring_stages<Format> * PackedRound<Format>::bytes;

template <class T, class Format>
__global__ void __launch_bounds__(packed_ring_threads, 1)
    packed_row_ring_kernel(const __grid_constant__ PackedRows<Format> work, Divisor<int32_t> group_blocks) {
  using Round = PackedRound<Format>;
  using Tile = typename Round::Tile;
  constexpr int stages = packed_ring_stages<Format>;
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ CopyBarrier copied[stages], multiplied[stages];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  int row_bytes = int(work.blocks * Format::bytes), groups = int((work.rows + 15) / 16);
  int tiles = int((work.blocks + Tile::blocks - 1) / Tile::blocks);
  int64_t matrix = work.matrix(0), first_of_matrix = matrix * work.rows;
  int rounds = matrix < 0 ? 0 : (tiles + packed_chains - 1) / packed_chains;
  // Rows that are not there are computed from others, and not written.
  auto row_of = [&](int group, int k) { return min(int64_t(group) * 16 + k, work.rows - 1); };

  if (threadIdx.x < stages) copied[threadIdx.x].init(16), multiplied[threadIdx.x].init(packed_ring_warps);
  __syncthreads();

  if (warp == packed_ring_warps) {
    const uint8_t *data = work.weights.block(first_of_matrix * work.blocks),
                  *end = work.weights.block(work.matrices * work.rows * work.blocks);
    int next_group = rounds > 0 ? int(blockIdx.x) : groups, next = 0;
    auto copy_next = [&](int stage) {
      if (next_group >= groups) return;
      if (lane < 16) {
        int offset = next * Round::round_bytes;
        const uint8_t* from = data + row_of(next_group, lane) * row_bytes + offset;
        int past = Tile::past(from, 0), count = past + min(Round::round_bytes, row_bytes - offset);
        int whole = (count + 15) & ~15;
        unsigned char* to = room + stage * Round::bytes + lane * Round::row_room;
        from -= past;
        if (Tile::most_past > 0 && end - from < whole) {
          // The array ends with a part of 16 bytes.
          whole = count & ~15;
          for (int k = whole; k < count; ++k) to[k] = from[k];
        }
        copied[stage].arrive_expecting(whole);
        if (whole > 0) copy_bulk(to, from, whole, copied[stage]);
      }
      if (++next == rounds) next = 0, next_group += gridDim.x;
    };
    for (int stage = 0; stage < stages; ++stage) copy_next(stage);

    int stage = 0, parity = 0;
    for (int group = blockIdx.x; group < groups; group += gridDim.x) {
      // A lane has four chains of a row.
      constexpr int own = packed_chains / 2;
      float sum[own] = {};
      for (int round = 0; round < rounds; ++round) {
        multiplied[stage].wait(parity);
        const float4* sums = reinterpret_cast<const float4*>(room + stage * Round::bytes + Round::rows);
        float4 of_tile[own];
#pragma unroll
        for (int t = 0; t < own; ++t) of_tile[t] = sums[(lane / 16 * own + t) * 16 + lane % 16];
        __syncwarp();
        copy_next(stage);
#pragma unroll
        for (int t = 0; t < own; ++t)
          if (round * packed_chains + lane / 16 * own + t < tiles)
            sum[t] += (of_tile[t].x + of_tile[t].y) + (of_tile[t].z + of_tile[t].w);
        if (++stage == stages) stage = 0, parity ^= 1;
      }
#pragma unroll
      for (int t = 0; t < own; ++t) sum[t] += __shfl_xor_sync(~0u, sum[t], 16);
#pragma unroll
      for (int half = own / 2; half > 0; half /= 2)
#pragma unroll
        for (int t = 0; t < half; ++t) sum[t] += sum[t + half];
      int64_t first = int64_t(group) * 16;
      write_row_sums<T>(work, 0, first_of_matrix, first, lane < 16 && first + lane < work.rows, sum[0], group_blocks,
                        nullptr);
    }
    return;
  }

  int r = lane / 4, c = lane % 4;
  const T* from_x = static_cast<const T*>(work.x);
  PackedRowColumn<Format> column(int(work.columns()), r, c);
  int at_row = r * Round::row_room;
  keep(at_row);
  // The warp's next tile, and how many tiles after the first of the round it is.
  int next_group = blockIdx.x, next = warp, after = warp;
  PackedRowElements x_ahead;
  PackedArrays arrays_ahead;
  auto fetch_next = [&] {
    while (next >= rounds * packed_chains) next -= rounds * packed_chains, next_group += gridDim.x;
    if (next_group >= groups || next >= tiles) return;
    x_ahead = column.load(from_x, next);
    PackedArrayLoads<Format> loads(work, [&](int h) { return first_of_matrix + row_of(next_group, 8 * h + r); });
    arrays_ahead = loads.load(next, c, int(work.blocks), group_blocks);
  };
  if (rounds > 0) fetch_next();
  int stage = 0, parity = 0;
  int of_block = (groups - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x) * rounds;
#pragma unroll 1
  for (int k = 0; k < of_block; ++k, after -= packed_chains) {
    copied[stage].wait(parity);
    if (after < packed_chains) {
      int group = next_group, tile = next, chain = tile % packed_chains;
      PackedRowElements x = x_ahead;
      PackedArrays arrays = arrays_ahead;
      after += packed_ring_warps, next += packed_ring_warps;
      fetch_next();
      if (tile < tiles) {
        unsigned char* of_round = room + stage * Round::bytes;
        const uint8_t* row[2];
#pragma unroll
        for (int h = 0; h < 2; ++h)
          row[h] =
              of_round + at_row + 8 * h * Round::row_room + chain * Tile::tile_bytes +
              Tile::past(work.weights.block((first_of_matrix + row_of(group, 8 * h + r)) * work.blocks), tile - chain);
        float sums[2];
        multiply_row_tile<T, Format>(row, tile, int(work.blocks), x, arrays, c, nullptr, 0, sums);
#pragma unroll
        for (int h = 0; h < 2; ++h)
          reinterpret_cast<float*>(of_round + Round::rows)[(chain * 16 + 8 * h + r) * 4 + c] = sums[h];
      }
    }
    __syncwarp();
    if (lane == 0) multiplied[stage].arrive();
    if (++stage == stages) stage = 0, parity ^= 1;
  }
}

// Whether the kernel is compiled for a format. Others are slower by it or the same: those with tables, and of fewer
// than four bits a weight, wait for instructions. Weights straight to registers (packed_row_direct_cuda.h) are faster.
template <class Format>
inline constexpr bool packed_ring_serves =
    !Format::has_table && !packed_direct_serves<Format> && 2 * Format::bytes >= Format::block;

// Whether the kernel is taken. On an H200, in us, that of packed_row_mma_cuda.h and this one: Q6_K of [8192, 8192] 25.9
// and 19.7, of [1024, 32768] 22.1 and 19.1, of [1024, 4096] 4.4 and 4.7. Of at most six bits only where its blocks have
// the same number of groups and little to do: Q4_0 of [8192, 8192] 20.7 and 18.1, of [2304, 14336] 13.5 and 16.4, of
// [28672, 8192] 52.9 and 59.6. Integers of 8 bits by group of [8192, 8192] 24.3 and 23.6, of [6144, 4096] 11.2
// and 12.7.
template <class T, class Format>
bool packed_ring_is_faster(const PackedRows<Format>& work) {
  constexpr int64_t enough = (Format::has_arrays ? 36 : 16) << 20, many = 48 << 20, wide = 8192;
  constexpr bool exceeds_six_bits = 4 * Format::bytes > 3 * Format::block;
  int64_t bytes = work.rows * work.blocks * Format::bytes;
  if (work.batches > 1 || bytes < enough) return false;
  if (!exceeds_six_bits) {
    int64_t groups = ceil_div(work.rows, 16), blocks = multiprocessors_of_device();
    if (bytes > many || work.columns() > wide || blocks == 0) return false;
    if (100 * groups < 95 * blocks * ceil_div(groups, blocks)) return false;
  }
  int most = 0;
  return most_shared_memory(most).ok() && packed_ring_bytes<Format> <= most &&
         has_bulk_copies(packed_row_ring_kernel<T, Format>);
}

template <class T, class Format>
Status packed_row_ring(const Executor& executor, const PackedRows<Format>& work) {
  constexpr int bytes = packed_ring_bytes<Format>;
  auto kernel = packed_row_ring_kernel<T, Format>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  unsigned blocks = unsigned(std::min<int64_t>(ceil_div(work.rows, 16), multiprocessors_of_device()));
  kernel<<<blocks, packed_ring_threads, size_t(bytes), executor.stream>>>(
      work, Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
  return launched();
}

}  // namespace internal
}  // namespace baracuda
