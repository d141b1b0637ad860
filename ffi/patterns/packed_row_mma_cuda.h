// The packed rows pattern on tensor cores, for one row of x in a 16-bit float.
//
// A product has eight columns. Those are eight groups of 32 neighbors of x, or of 16, all of the same row: column n of
// the product with the weights of group n is what is wanted, and the other columns are of no use. So a lane has the
// elements of x that it multiplies a tile with in four registers, reads no others, and has the sums of the groups 2 c
// and 2 c + 1 (or 4 c ... 4 c + 3) of two rows, whose factors it decodes itself. Sums of x of all groups are two
// products.
//
// The order of sums is that of packed_rows_mma_cuda.h, and so are the bits: groups, by halves, tiles of a chain, and
// chains by halves. A block has eight chains of 16 rows, `sets` times.
#pragma once

#include "copy_async_cuda.h"
#include "keep_cuda.h"
#include "mma_cuda.h"
#include "packed_pairs_cuda.h"
#include "packed_rows.h"
#include "packed_rows_mma_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

template <class Format, int stages, int sets>
struct PackedRowMmaMemory {
  using Tile = PackedMmaMemory<Format, 1, 1>;
  static constexpr int threads = packed_mma_threads * sets;
  static constexpr bool reads_pairs = Format::long_entries, reads_entries = Format::has_table && !reads_pairs;
  static constexpr int entries = reads_pairs ? pair_entries : reads_entries ? 16 * entry_room : 0;
  static constexpr int of_tiles = stages * packed_chains * sets * Tile::weights;
  static constexpr int sums = packed_chains * sets * 16 * int(sizeof(float));
  static constexpr int bytes = entries + (of_tiles > sums ? of_tiles : sums);
};

// Rows of W that a lane copies and multiplies, r and r + 8 of a warp's.
template <int stages, int sets, int blocks, class T, class Format>
__global__ void __launch_bounds__(packed_mma_threads* sets, blocks)
    packed_row_mma_kernel(const __grid_constant__ PackedRows<Format> work, Divisor<int32_t> group_blocks) {
  using namespace packed;
  using Memory = PackedRowMmaMemory<Format, stages, sets>;
  using Tile = typename Memory::Tile;
  constexpr int units_of_block = Format::block / 32, parts = value_parts<Format>;
  // Two groups of a lane, or four.
  constexpr bool whole_groups = Tile::groups == 8;
  constexpr int kinds = whole_groups ? 1 : 2;
  constexpr bool has_sums = sums_of_x<T, Format>;
  constexpr float excess = pairs_excess<T, Format>;
  constexpr uint32_t ones = std::is_same_v<T, BFloat16> ? 0x3f803f80 : 0x3c003c00;
  extern __shared__ __align__(16) char memory[];
  __shared__ float table[16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
  int set = warp / packed_chains, chain = warp % packed_chains;
  unsigned char *entries = reinterpret_cast<unsigned char*>(memory), *room = entries + Memory::entries;
  int lane_weights = warp * stages * Tile::weights + r * Tile::row_room;
  keep(lane_weights);

  int64_t columns = work.columns();
  int64_t first_row = (int64_t(blockIdx.x) * sets + set) * 16;
  int tiles = int((work.blocks + Tile::blocks - 1) / Tile::blocks);
  // Rows that are not there are computed from others, and not written.
  auto row_of = [&](int k) { return min(first_row + k, work.rows - 1); };
  // The elements of the lane's column in a tile are four at a time in two units, or in two parts of one.
  int at_x[2], last_x = int(columns) - width;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    int unit = Format::parts_share ? r : (r & ~1) + j, part = Format::parts_share ? j : r % 2;
    at_x[j] = unit / units_of_block * Format::block + position<Format>(unit % units_of_block, part, c);
  }

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
    uint2 x_ahead[2];
    float scale_ahead[2][2], zero_ahead[2][2];  // of rows and groups, where factors are arrays
    auto fetch_others = [&](int tile) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        int at = tile * packed_mma_tile + at_x[j];
        // Factors of blocks that are not there are 0, whatever these are multiplied with.
        if constexpr (Tile::blocks > 1) at = min(at, last_x);
        x_ahead[j] = __ldg(reinterpret_cast<const uint2*>(from_x + at));
      }
      if constexpr (Format::has_arrays) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          int block = tile * Tile::blocks + 2 * c + e;
          uint32_t group = uint32_t(group_blocks.quotient(min(block, int(work.blocks) - 1)));
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            scale_ahead[h][e] = __ldg(from_scale[h] + group);
            if constexpr (Format::has_zero) zero_ahead[h][e] = __ldg(from_zero[h] + group);
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
    EntryBytes of_entries{};
    if constexpr (Format::has_table) {
      if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
      if constexpr (Memory::reads_pairs)
        write_pair_entries<T, Format>(entries, Memory::threads);
      else
        write_entries<T, Format>(entries, lane, warp);
      __syncthreads();
    }
    int at_lane = Memory::reads_pairs ? 8 * (lane % 16) : 4 * lane;
    keep(at_lane);

    float acc[2] = {0, 0};  // of the lane's two rows
    int stage = 0;
#pragma unroll 1
    for (int tile = chain; tile < used; tile += packed_chains) {
      __pipeline_wait_prior(stages - 2);
      __syncwarp();  // all have what they copied, and are through with the stage before
      uint32_t b[2][2] = {{x_ahead[0].x, x_ahead[0].y}, {x_ahead[1].x, x_ahead[1].y}};
      float scale[2][2], zero[2][2];
      if constexpr (Format::has_arrays)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
          for (int e = 0; e < 2; ++e) scale[h][e] = scale_ahead[h][e], zero[h][e] = zero_ahead[h][e];
      if (tile + packed_chains < used) fetch_others(tile + packed_chains);
      fetch_next();
      const uint8_t* row[2];
#pragma unroll
      for (int h = 0; h < 2; ++h)
        row[h] = room + lane_weights + stage * Tile::weights + 8 * h * Tile::row_room + copies.past(h, tile);
      stage = stage == stages - 1 ? 0 : stage + 1;

      // Of a lane: by the kind of a group, the half of the rows, and the column.
      float mine[kinds][2][2] = {};
#pragma unroll
      for (int first = 0; first < 8; first += 2) {
        // Of two groups; of table entries in two parts, of each half of the rows, in place of the other half what is
        // left of the entries.
        float sums[kinds][2][parts][4] = {};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          int u = first + side, block = u / units_of_block, unit = u % units_of_block;
          Bytes bytes[2][2];
#pragma unroll
          for (int h = 0; h < 2; ++h)
            if constexpr (Memory::entries > 0)
              bytes[h][0] = Format::packed(row[h] + block * Format::bytes, unit, c);
            else
              Format::unpack(row[h] + block * Format::bytes, unit, c, bytes[h][0], bytes[h][1]);
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            uint32_t first_pair[2][parts], second_pair[2][parts];
#pragma unroll
            for (int h = 0; h < 2; ++h)
              if constexpr (Memory::reads_pairs)
                entry_pairs_of_bytes<Format>(bytes[h][0], part, entries, at_lane, first_pair[h], second_pair[h]);
              else if constexpr (Memory::reads_entries)
                entry_pairs<Format>(bytes[h][0], part, entries, at_lane, first_pair[h], second_pair[h]);
              else
                value_pairs<T, Format>(bytes[h][part], first_pair[h], second_pair[h], of_entries);
            auto& sum = sums[whole_groups ? 0 : side][Format::parts_share ? side : part];
            const auto& with = b[Format::parts_share ? part : side];
            if constexpr (parts == 1) {
              uint32_t a[4] = {first_pair[0][0], first_pair[1][0], second_pair[0][0], second_pair[1][0]};
              multiply_add<T>(sum[0], a, with);
            } else {
#pragma unroll
              for (int h = 0; h < 2; ++h) {
                uint32_t a[4] = {first_pair[h][0], first_pair[h][1], second_pair[h][0], second_pair[h][1]};
                multiply_add<T>(sum[h], a, with);
              }
            }
          }
        }
#pragma unroll
        for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
          for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float sum = 0;
              if constexpr (parts == 1)
                sum = sums[kind][e][0][2 * h + e];
              else
                sum = sums[kind][e][h][e] + sums[kind][e][h][2 + e];
              mine[kind][h][e] = c == first / 2 ? sum : mine[kind][h][e];
            }
      }

      float sums_x[kinds][4] = {};
      if constexpr (has_sums) {
        uint32_t a[4] = {ones, ones, ones, ones};
#pragma unroll
        for (int j = 0; j < 2; ++j) multiply_add<T>(sums_x[whole_groups ? 0 : j], a, b[j]);
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Factors by[kinds][2];
        if constexpr (Format::has_arrays) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            bool there = tile * Tile::blocks + 2 * c + e < int(work.blocks);
            by[0][e].scale = there ? scale[h][e] : 0.f, by[0][e].shift = 0;
            if constexpr (Format::entry_multiple > 1) by[0][e].scale *= 1.0f / Format::entry_multiple;
            if constexpr (Format::has_zero) by[0][e].shift = -(by[0][e].scale * (excess + zero[h][e]));
            if constexpr (has_sums && !Format::has_zero) by[0][e].shift = -(by[0][e].scale * excess);
          }
        } else {
          if constexpr (Format::units_share) {
            Format::two_factors(row[h], c, by[0]);
          } else {
#pragma unroll
            for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
              for (int e = 0; e < 2; ++e) {
                int unit = whole_groups ? 2 * c + e : 2 * c + kind, part = whole_groups ? 0 : e;
                by[kind][e] = {};
                if (Tile::blocks == 1 || tile * Tile::blocks + unit < int(work.blocks))
                  by[kind][e] =
                      Format::factors(row[h] + unit / units_of_block * Format::bytes, unit % units_of_block, part);
                if constexpr (Format::entry_multiple > 1) by[kind][e].scale *= 1.0f / Format::entry_multiple;
              }
          }
          if constexpr (excess > 0)
#pragma unroll
            for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
              for (int e = 0; e < 2; ++e)
                by[kind][e].shift = Format::has_shift ? fmaf(-excess, by[kind][e].scale, by[kind][e].shift)
                                                      : -(by[kind][e].scale * excess);
        }
        float sum = 0;
#pragma unroll
        for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            sum = fmaf(by[kind][e].scale, mine[kind][h][e], sum);
            if constexpr (has_sums) sum = fmaf(by[kind][e].shift, sums_x[kind][e], sum);
          }
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
      uint32_t again = __ballot_sync(~0u, there && !(fabsf(sum[0]) <= 3.402823466e38f));
      for (; again != 0; again &= again - 1) {
        int which = __ffs(int(again)) - 1;
        float product = packed_product<T>(work, first_of_matrix + block_row + int(threadIdx.x) - lane + which, from_x,
                                          group_blocks, table);
        if (lane == which) sum[0] = product;
      }
      if (there) static_cast<T*>(work.y)[batch * work.rows + row] = T(sum[0]);
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
  constexpr bool reads_pairs = PackedRowMmaMemory<Format, 2, 1>::reads_pairs;
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
