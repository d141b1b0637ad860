// The packed rows pattern on tensor cores, for one row of x in a 16-bit float.
//
// A block has eight chains of 16 rows, `sets` times. Its warps each copy the tiles of a chain, some ahead, and multiply
// them (packed_row_tile_cuda.h).
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

template <class Format, int stages, int sets>
struct PackedRowMmaMemory {
  using Tile = PackedMmaMemory<Format, 1, 1>;
  static constexpr int threads = packed_mma_threads * sets;
  static constexpr int of_tiles = stages * packed_chains * sets * Tile::weights;
  static constexpr int sums = packed_chains * sets * 16 * int(sizeof(float));
  static constexpr int bytes = PackedRowEntries<Format>::bytes + (of_tiles > sums ? of_tiles : sums);
};

// Rows of W that a lane copies and multiplies, r and r + 8 of a warp's.
template <int stages, int sets, int blocks, class T, class Format>
__global__ void __launch_bounds__(packed_mma_threads* sets, blocks)
    packed_row_mma_kernel(const __grid_constant__ PackedRows<Format> work, Divisor<int32_t> group_blocks) {
  using Memory = PackedRowMmaMemory<Format, stages, sets>;
  using Tile = typename Memory::Tile;
  using Entries = PackedRowEntries<Format>;
  extern __shared__ __align__(16) char memory[];
  __shared__ float table[16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
  int set = warp / packed_chains, chain = warp % packed_chains;
  unsigned char *entries = reinterpret_cast<unsigned char*>(memory), *room = entries + Entries::bytes;
  int lane_weights = warp * stages * Tile::weights + r * Tile::row_room;
  keep(lane_weights);

  int64_t columns = work.columns();
  int64_t first_row = (int64_t(blockIdx.x) * sets + set) * 16;
  int tiles = int((work.blocks + Tile::blocks - 1) / Tile::blocks);
  // Rows that are not there are computed from others, and not written.
  auto row_of = [&](int k) { return min(first_row + k, work.rows - 1); };
  PackedRowColumn<Format> column(int(columns), r, c);

  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    int64_t matrix = work.matrix(batch), first_of_matrix = matrix * work.rows;
    int used = matrix < 0 ? 0 : tiles;  // the same for all threads of the block
    PackedTileCopies<Format> copies(work, c, [&](int h) { return first_of_matrix + row_of(8 * h + r); });
    const float *from_scale[2], *from_zero[2];
    if constexpr (Format::has_arrays)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        int64_t first_group = (first_of_matrix + row_of(8 * h + r)) * work.groups;
        from_scale[h] = work.weights.scale + first_group;
        keep(from_scale[h]);
        if constexpr (Format::has_zero) {
          from_zero[h] = work.weights.zero + first_group;
          keep(from_zero[h]);
        }
      }
    const T* from_x = static_cast<const T*>(work.x) + batch * columns;

    auto fetch = [&](int tile, int stage) {
      copies.copy(tile, c, room + lane_weights + stage * Tile::weights + 16 * c);
    };
    // Loads come in the order in which they are begun: what else a tile needs goes before weights of later tiles.
    PackedRowElements x_ahead;
    PackedRowArrays arrays_ahead;
    auto fetch_others = [&](int tile) {
      x_ahead = column.load(from_x, tile);
      if constexpr (Format::has_arrays) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          int block = tile * Tile::blocks + 2 * c + e;
          uint32_t group = uint32_t(group_blocks.quotient(min(block, int(work.blocks) - 1)));
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            arrays_ahead.scale[h][e] = __ldg(from_scale[h] + group);
            if constexpr (Format::has_zero) arrays_ahead.zero[h][e] = __ldg(from_zero[h] + group);
          }
        }
      }
    };

    if (chain < used) fetch_others(chain);
    int next = chain, stage_of_next = 0;
    auto fetch_next = [&] {
      if (next < used) fetch(next, stage_of_next);
      next += packed_chains, stage_of_next = stage_of_next == stages - 1 ? 0 : stage_of_next + 1;
      __pipeline_commit();
    };
#pragma unroll
    for (int k = 0; k < stages - 1; ++k) fetch_next();
    if constexpr (Format::has_table) {
      if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
      Entries::template write<T>(entries, Memory::threads);
      __syncthreads();
    }
    int at_lane = Entries::at_lane(lane);
    keep(at_lane);

    float acc[2] = {0, 0};  // of the lane's two rows
    int stage = 0;
#pragma unroll 1
    for (int tile = chain; tile < used; tile += packed_chains) {
      __pipeline_wait_prior(stages - 2);
      __syncwarp();  // all have what they copied, and are through with the stage before
      PackedRowElements x = x_ahead;
      PackedRowArrays arrays = arrays_ahead;
      if (tile + packed_chains < used) fetch_others(tile + packed_chains);
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
        acc[h] += sum;
      }
    }

    __pipeline_wait_prior(0);
    __syncthreads();
    float* partial = reinterpret_cast<float*>(room);
    if (c == 0)
#pragma unroll
      for (int h = 0; h < 2; ++h) partial[warp * 16 + 8 * h + r] = acc[h];
    __syncthreads();
    if (threadIdx.x < 32 * ((16 * sets + 31) / 32)) {
      int of_set = int(threadIdx.x) / 16 % sets;
      int64_t block_row = int64_t(blockIdx.x) * 16 * sets, row = block_row + threadIdx.x;
      bool there = int(threadIdx.x) < 16 * sets && row < work.rows;
      float sum[packed_chains];
#pragma unroll
      for (int t = 0; t < packed_chains; ++t) sum[t] = partial[(of_set * packed_chains + t) * 16 + threadIdx.x % 16];
#pragma unroll
      for (int half = packed_chains / 2; half > 0; half /= 2)
#pragma unroll
        for (int t = 0; t < half; ++t) sum[t] += sum[t + half];
      write_row_sums<T>(work, batch, first_of_matrix, row - lane, there, sum[0], group_blocks, table);
    }
    __syncthreads();  // before tiles are written again
  }
}

template <int stages, int sets, int blocks, class T, class Format>
Status packed_row_mma_by(const Executor& executor, const PackedRows<Format>& work) {
  constexpr int64_t most_blocks_z = 65535;
  using Memory = PackedRowMmaMemory<Format, stages, sets>;
  auto kernel = packed_row_mma_kernel<stages, sets, blocks, T, Format>;
  if (Status status = allow_shared_memory(kernel, Memory::bytes); !status.ok()) return status;
  dim3 grid(unsigned(ceil_div(work.rows, 16 * sets)), 1, unsigned(std::min(work.batches, most_blocks_z)));
  kernel<<<grid, Memory::threads, size_t(Memory::bytes), executor.stream>>>(
      work, Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
  return launched();
}

// Fewer rows on the way at a time take less: of [8192, 8192] three blocks of eight warps with two stages, 20.5 us, and
// four of these 21.2; of integers by group, two blocks with four stages, 19.5 us, and three with three 22.6. Tables of
// pairs are shared by sixteen warps.
template <class T, class Format>
Status packed_row_mma(const Executor& executor, const PackedRows<Format>& work) {
  constexpr bool reads_pairs = PackedRowEntries<Format>::are_pairs;
  constexpr int sets = reads_pairs ? 2 : 1;
  constexpr int stages = Format::has_arrays && !Format::has_table ? 4 : 2;
  constexpr int bytes = PackedRowMmaMemory<Format, stages, sets>::bytes;
  constexpr int blocks = reads_pairs || stages == 4 ? 2 : 3;
  int most = 0;
  if (Status status = most_shared_memory(most); !status.ok()) return status;
  if (bytes > most) return packed_mma<T>(executor, work);
  return packed_row_mma_by<stages, sets, blocks, T>(executor, work);
}

}  // namespace internal
}  // namespace baracuda
