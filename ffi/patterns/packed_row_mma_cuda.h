// The packed rows pattern on tensor cores, for one row of x in a 16-bit float.
//
// A block has eight chains of 16 rows. Its warps each copy the tiles of a chain or several, some ahead,
// and multiply them (packed_row_tile_cuda.h).
//
// The order of sums is that of packed_rows_mma_cuda.h, and so are the bits: groups, by halves, tiles of a chain, and
// chains by halves.
#pragma once

#include "copy_async_cuda.h"
#include "keep_cuda.h"
#include "packed_row_tile_cuda.h"
#include "packed_rows.h"
#include "packed_rows_mma_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

template <class Format, int stages, int warps>
struct PackedRowMmaMemory {
  using Tile = PackedMmaMemory<Format, 1, 1>;
  static constexpr int threads = 32 * warps;
  static constexpr int of_tiles = stages * warps * Tile::weights;
  static constexpr int sums = packed_chains * 16 * int(sizeof(float));
  static constexpr int bytes = packed_row_entries<Format> + (of_tiles > sums ? of_tiles : sums);
};

// Rows of W that a lane copies and multiplies, r and r + 8 of a warp's.
template <int stages, int warps, int blocks, class T, class Format>
__global__ void __launch_bounds__(32 * warps, blocks)
    packed_row_mma_kernel(const __grid_constant__ PackedRows<Format> work, Divisor<int32_t> group_blocks) {
  using Memory = PackedRowMmaMemory<Format, stages, warps>;
  using Tile = typename Memory::Tile;
  extern __shared__ __align__(16) char memory[];
  __shared__ float table[16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
  constexpr int chains = packed_chains / warps;  // of a warp, which takes tiles of each in turn
  unsigned char *entries = reinterpret_cast<unsigned char*>(memory), *room = entries + packed_row_entries<Format>;
  int lane_weights = warp * stages * Tile::weights + r * Tile::row_room;
  keep(lane_weights);

  int64_t columns = work.columns();
  int64_t first_row = int64_t(blockIdx.x) * 16;
  int tiles = int((work.blocks + Tile::blocks - 1) / Tile::blocks);
  // Rows that are not there are computed from others, and not written.
  auto row_of = [&](int k) { return min(first_row + k, work.rows - 1); };
  PackedRowColumn<Format> column(int(columns), r, c);

  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    int64_t matrix = work.matrix(batch), first_of_matrix = matrix * work.rows;
    int used = matrix < 0 ? 0 : tiles;  // the same for all threads of the block
    PackedTileCopies<Format> copies(work, c, [&](int h) { return first_of_matrix + row_of(8 * h + r); });
    PackedArrayLoads<Format> loads(work, [&](int h) { return first_of_matrix + row_of(8 * h + r); });
    const T* from_x = static_cast<const T*>(work.x) + batch * columns;

    auto fetch = [&](int tile, int stage) {
      copies.copy(tile, c, room + lane_weights + stage * Tile::weights + 16 * c);
    };
    // Loads come in the order in which they are begun: what else a tile needs goes before weights of later tiles.
    PackedRowElements x_ahead;
    PackedArrays arrays_ahead;
    auto fetch_others = [&](int tile) {
      x_ahead = column.load(from_x, tile);
      arrays_ahead = loads.load(tile, c, int(work.blocks), group_blocks);
    };

    if (warp < used) fetch_others(warp);
    int next = warp, stage_of_next = 0;
    auto fetch_next = [&] {
      if (next < used) fetch(next, stage_of_next);
      next += warps, stage_of_next = stage_of_next == stages - 1 ? 0 : stage_of_next + 1;
      __pipeline_commit();
    };
#pragma unroll
    for (int k = 0; k < stages - 1; ++k) fetch_next();
    if constexpr (Format::has_table) {
      if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
      write_entries<T, Format>(entries, lane, int(threadIdx.x) / 32);
      __syncthreads();
    }
    int at_lane = 4 * lane;
    keep(at_lane);

    float acc[chains][2] = {};  // of the lane's two rows, of the chain of the next tile first
    int stage = 0;
#pragma unroll 1
    for (int tile = warp; tile < used; tile += warps) {
      __pipeline_wait_prior(stages - 2);
      __syncwarp();  // all have what they copied, and are through with the stage before
      PackedRowElements x = x_ahead;
      PackedArrays arrays = arrays_ahead;
      if (tile + warps < used) fetch_others(tile + warps);
      fetch_next();
      const uint8_t* row[2];
#pragma unroll
      for (int h = 0; h < 2; ++h)
        row[h] = room + lane_weights + stage * Tile::weights + 8 * h * Tile::row_room + copies.past(h, tile);
      stage = stage == stages - 1 ? 0 : stage + 1;

      float sums[2];
      multiply_row_tile<T, Format>(row, tile, int(work.blocks), x, arrays, c, entries, at_lane, sums);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float sum = sums[h];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        sum += acc[0][h];
#pragma unroll
        for (int k = 1; k < chains; ++k) acc[k - 1][h] = acc[k][h];
        acc[chains - 1][h] = sum;
      }
    }

    __pipeline_wait_prior(0);
    __syncthreads();
    float* partial = reinterpret_cast<float*>(room);
    int turns = (used - warp + warps - 1) / warps;  // after which the chain of the next tile is the first
    if (c == 0)
#pragma unroll
      for (int k = 0; k < chains; ++k)
#pragma unroll
        for (int h = 0; h < 2; ++h) partial[(warp + (turns + k) % chains * warps) * 16 + 8 * h + r] = acc[k][h];
    __syncthreads();
    if (threadIdx.x < 32) {
      bool there = lane < 16 && first_row + lane < work.rows;
      float sum[packed_chains];
#pragma unroll
      for (int t = 0; t < packed_chains; ++t) sum[t] = partial[t * 16 + lane % 16];
#pragma unroll
      for (int half = packed_chains / 2; half > 0; half /= 2)
#pragma unroll
        for (int t = 0; t < half; ++t) sum[t] += sum[t + half];
      write_row_sums<T>(work, batch, first_of_matrix, first_row, there, sum[0], group_blocks, table);
    }
    __syncthreads();  // before tiles are written again
  }
}

template <int stages, int warps, int blocks, class T, class Format>
Status packed_row_mma_by(const Executor& executor, const PackedRows<Format>& work) {
  constexpr int64_t most_blocks_z = 65535;
  using Memory = PackedRowMmaMemory<Format, stages, warps>;
  auto kernel = packed_row_mma_kernel<stages, warps, blocks, T, Format>;
  if (Status status = allow_shared_memory(kernel, Memory::bytes); !status.ok()) return status;
  dim3 grid(unsigned(ceil_div(work.rows, 16)), 1, unsigned(std::min(work.batches, most_blocks_z)));
  kernel<<<grid, Memory::threads, size_t(Memory::bytes), executor.stream>>>(
      work, Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
  return launched();
}

// The chains of a block are those of eight warps, or of four with two each, twice as many blocks. Fewer rows on the way
// at a time take less: of [8192, 8192] three blocks of eight warps with two stages, 20.5 us, and four of these 21.2; of
// integers by group, four blocks of four warps with four stages, 16.4 us, and two of eight 18.2. Of eight bits two
// blocks of eight warps, or where there are more than a turn of these five of four.
template <class T, class Format>
Status packed_row_mma(const Executor& executor, const PackedRows<Format>& work) {
  constexpr bool eight_bits = Format::has_arrays && Format::bytes == Format::block;
  constexpr bool by_group = Format::has_arrays && !eight_bits;
  constexpr int stages = by_group ? 4 : 2, warps = by_group ? 4 : 8;
  constexpr int bytes = PackedRowMmaMemory<Format, stages, warps>::bytes;
  constexpr int blocks = eight_bits ? 2 : by_group ? 4 : 3, smaller = eight_bits ? 5 : 2 * blocks;
  int most = 0;
  if (Status status = most_shared_memory(most); !status.ok()) return status;
  if (bytes > most) return packed_mma<T>(executor, work);
  if constexpr (!Format::has_table && warps == 8) {
    // More than a turn of larger blocks, by up to a half, is one turn of smaller ones, and takes up to 15 % less.
    int64_t groups = work.batches * ceil_div(work.rows, 16), turn = int64_t(blocks) * multiprocessors_of_device();
    if (groups > turn && (eight_bits || 2 * groups <= 3 * turn))
      return packed_row_mma_by<stages, 4, smaller, T>(executor, work);
  }
  return packed_row_mma_by<stages, warps, blocks, T>(executor, work);
}

}  // namespace internal
}  // namespace baracuda
