// The packed rows pattern on a CUDA grid, for x of 32 and 64 bits: a warp has a few rows of W, and a block some columns
// of x. packed_rows_half_cuda.h is for 16 bits.
//
// A tile is 32 units of 32 weights of a row, a unit for each lane. Where blocks of the format begin at any byte, its
// bytes come into shared memory by asynchronous copies of 16 bytes, from the multiple of 16 before it on, while the
// tile before it is multiplied. Tiles of x are in shared memory too, as they are multiplied. Four unused elements after
// each 32 keep lanes on different banks.
//
// Each lane adds in the order of its units; lanes are added by halves.
#pragma once

#include "copy_async_cuda.h"
#include "packed_row_table_cuda.h"
#include "packed_rows.h"
#include "shared_memory_cuda.h"
#include "store_shared_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int packed_most_warps = 8, packed_tile = 1024, packed_padded = packed_tile / 32 * 36;

// Whether blocks begin at multiples of 16 bytes: then lanes read them where they are.
template <class Format>
inline constexpr bool packed_in_place = Format::bytes % 16 == 0;

// Room for a tile of a row that begins at any byte of 16, in copies of 16.
template <class Format>
inline constexpr int packed_stage =
    packed_in_place<Format> ? 0 : (packed_tile / Format::block * Format::bytes + 30) / 16 * 16;

template <class Format, class Sum, int R, int C>
struct PackedMemory {
  static __host__ __device__ int64_t bytes(int warps, int tiles) {
    return int64_t(sizeof(Sum)) * C * tiles * packed_padded + int64_t(warps) * 2 * R * packed_stage<Format>;
  }
};

// Copies `bytes` bytes from `begin` on to `stage + begin % 16`. Of the last 16 those after `end`, where the array has
// none, are not read.
template <int bytes>
__device__ void copy_tile(const uint8_t* begin, int count, const uint8_t* end, uint8_t* stage, int lane) {
  int past = int(reinterpret_cast<uintptr_t>(begin) & 15), copies = (past + count + 15) / 16;
  const uint8_t* start = begin - past;
#pragma unroll
  for (int k = 0; k < (bytes + 30) / 16; k += 32)
    if (k + lane < copies) {
      const uint8_t* from = start + 16 * (k + lane);
      int64_t there = end - from;
      copy_async(stage + 16 * (k + lane), from, there < 16 ? int(there) : 16);
    }
}

// Elements of x that are copied at a time.
inline constexpr int packed_some = 8;

template <int R, int C, class Sum, class Format>
__global__ void __launch_bounds__(32 * packed_most_warps, C == 1 ? 4 : 2)
    packed_rows_kernel(PackedRows<Format> work, int tiles_held, Divisor<int32_t> group_blocks) {
  using namespace packed;
  constexpr int units_of_block = Format::block / 32, blocks_of_tile = packed_tile / Format::block;
  constexpr int stage_bytes = packed_stage<Format>, tile_bytes = blocks_of_tile * Format::bytes;
  extern __shared__ __align__(16) char memory[];
  __shared__ float table[16];
  if constexpr (Format::has_table)
    if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  Sum* x = reinterpret_cast<Sum*>(memory);
  int of_column = tiles_held * packed_padded;
  uint8_t* stages = reinterpret_cast<uint8_t*>(x + C * of_column) + warp * 2 * R * stage_bytes;
  int64_t row_bytes = work.blocks * Format::bytes, columns = work.columns();
  int64_t first_row = (int64_t(blockIdx.x) * warps + warp) * R, first_column = int64_t(blockIdx.y) * C;
  int tiles = int((work.blocks + blocks_of_tile - 1) / blocks_of_tile);
  const uint8_t* data_end = work.weights.data + work.matrices * work.rows * row_bytes;

  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    int64_t matrix = work.matrix(batch);
    Sum sums[R][C] = {};
    // The same for all threads of the block, which wait for each other below.
    int used = matrix < 0 ? 0 : tiles;
    auto tile_of_row = [&, rows = work.weights.data + (matrix * work.rows + first_row) * row_bytes](int r, int tile) {
      return rows + r * row_bytes + int64_t(tile) * tile_bytes;
    };
    auto fetch = [&](int tile) {
      if constexpr (packed_in_place<Format>) return;
      if (tile < used) {
        int count = int(min(int64_t(tile_bytes), row_bytes - int64_t(tile) * tile_bytes));
#pragma unroll
        for (int r = 0; r < R; ++r)
          if (first_row + r < work.rows)
            copy_tile<tile_bytes>(tile_of_row(r, tile), count, data_end, stages + (tile % 2 * R + r) * stage_bytes,
                                  lane);
      }
      __pipeline_commit();
    };
    fetch(0);
    for (int tile = 0; tile < used; ++tile) {
      if (tile % tiles_held == 0) {
        __syncthreads();  // what is there has been read
        int64_t begin = int64_t(tile) * packed_tile;
#pragma unroll
        for (int c = 0; c < C; ++c) {
          int64_t from = (batch * work.count + first_column + c) * columns + begin;
          bool in_range = first_column + c < work.count;
          for (int k = threadIdx.x * packed_some; k < tiles_held * packed_tile && begin + k < columns;
               k += blockDim.x * packed_some) {
            Sum* to = x + c * of_column + k + k / 32 * 4;
            constexpr int V = 16 / sizeof(Sum);
#pragma unroll
            for (int j = 0; j < packed_some; j += V)
              store_shared<V>(to + j,
                              in_range ? load<V>(static_cast<const Sum*>(work.x) + from + k + j) : Vector<Sum, V>{});
          }
        }
        __syncthreads();
      }
      if constexpr (!packed_in_place<Format>) {
        fetch(tile + 1);
        __pipeline_wait_prior(1);
        __syncwarp();
      }
      int64_t block = int64_t(tile) * blocks_of_tile + lane / units_of_block;
      if (block < work.blocks) {
        int unit = lane % units_of_block;
        const Sum* of_block =
            x + (tile % tiles_held) * packed_padded + lane / units_of_block * (Format::block / 32 * 36);
        const uint8_t* from[R];
        Factors factors[R][2];
#pragma unroll
        for (int r = 0; r < R; ++r) {
          // Lanes whose row is not there unpack the last row or what is in the stage, and write nothing.
          int there = int(min(int64_t(r), work.rows - 1 - first_row));
          const uint8_t* of_row = tile_of_row(there, tile);
          if constexpr (!packed_in_place<Format>)
            of_row = stages + (tile % 2 * R + r) * stage_bytes + int(reinterpret_cast<uintptr_t>(of_row) & 15);
          from[r] = of_row + lane / units_of_block * Format::bytes;
          int64_t group = 0;
          if constexpr (Format::has_arrays)
            group = (matrix * work.rows + first_row + there) * work.groups + group_blocks.quotient(int32_t(block));
#pragma unroll
          for (int part = 0; part < 2; ++part) factors[r][part] = work.weights.factors(from[r], group, unit, part);
        }
        // Of many sums, one step at a time: else what the next steps load takes the registers of the sums.
        constexpr int together = R * C > 16 ? 1 : 4;
#pragma unroll(together)
        for (int i = 0; i < 4; ++i) {
          Bytes bytes[R][2];
#pragma unroll
          for (int r = 0; r < R; ++r) Format::unpack(from[r], unit, i, bytes[r][0], bytes[r][1]);
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            int at = position<Format>(unit, part, i);
            const Sum* with = of_block + at + at / 32 * 4;
            float weight[R][width];
#pragma unroll
            for (int r = 0; r < R; ++r) weights<Format>(bytes[r][part], factors[r][part], table, weight[r]);
#pragma unroll
            for (int c = 0; c < C; ++c) {
              constexpr int some = 16 / sizeof(Sum);
#pragma unroll
              for (int j = 0; j < width; j += some) {
                Vector<Sum, some> several = load<some>(with + c * of_column + j);
#pragma unroll
                for (int r = 0; r < R; ++r)
#pragma unroll
                  for (int k = 0; k < some; ++k) sums[r][c] += Sum(weight[r][j + k]) * several.lane[k];
              }
            }
          }
        }
      }
      if constexpr (!packed_in_place<Format>) __syncwarp();  // before the stage is written again
    }
    if constexpr (!packed_in_place<Format>) __pipeline_wait_prior(0);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int c = 0; c < C; ++c) {
        Sum total = sums[r][c];
        for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
        if (lane == 0 && first_row + r < work.rows && first_column + c < work.count)
          static_cast<Sum*>(work.y)[(batch * work.count + first_column + c) * work.rows + first_row + r] = total;
      }
  }
}

template <int R, int C, class Sum, class Format>
Status packed_rows_by(const Executor& executor, const PackedRows<Format>& work) {
  // Fewer warps a block where there are few rows, so that blocks reach all multiprocessors.
  constexpr int64_t enough_blocks = 264, most_blocks_z = 65535;
  constexpr int64_t of_x = int64_t(40) << 10;
  int warps = packed_most_warps;
  while (warps > 1 && ceil_div(work.rows, warps * R) * work.batches < enough_blocks) warps /= 2;
  int64_t tiles = std::max<int64_t>(1, ceil_div(work.columns(), packed_tile));
  int64_t fit = std::max<int64_t>(1, of_x / int64_t(sizeof(Sum) * C * packed_padded));
  int held = int(std::min(tiles, fit));
  int64_t bytes = PackedMemory<Format, Sum, R, C>::bytes(warps, held);
  auto kernel = packed_rows_kernel<R, C, Sum, Format>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  dim3 grid(unsigned(ceil_div(work.rows, warps * R)), unsigned(ceil_div(work.count, C)),
            unsigned(std::min(work.batches, most_blocks_z)));
  kernel<<<grid, warps * 32, size_t(bytes), executor.stream>>>(
      work, held, Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
  return launched();
}

}  // namespace internal

template <class Sum, class Format>
Status packed_rows(const Executor& executor, const PackedRows<Format>& work) {
  if (work.batches * work.rows * work.count == 0) return {};
  if (work.blocks >= narrow_reach) return {"rows of 2^31 blocks and more are too long"};
  if constexpr (sizeof(Sum) == 8) {
    return internal::packed_rows_by<2, 4, Sum>(executor, work);
  } else {
    if constexpr (internal::packed_table_serves<Format>)
      if (work.count == 1 && internal::packed_table_is_faster<Sum>(work))
        return internal::packed_row_table<Sum>(executor, work);
    if (work.count == 1) return internal::packed_rows_by<2, 1, Sum>(executor, work);
    if (work.count <= 4) return internal::packed_rows_by<4, 4, Sum>(executor, work);
    return internal::packed_rows_by<4, 8, Sum>(executor, work);
  }
}

}  // namespace baracuda
