// The packed rows pattern for some rows of x in 16-bit floats and a large matrix, by the warpgroups of Hopper. For
// sm_90a.
//
// A block has 128 rows of W, a warp 16 of them, and N times 8 rows of x, which are columns here. The values of 16
// weights of a row are A of a product, in registers as they are unpacked, and x is B, in shared memory in the order of
// the values: lane c of four has the four weights of step c of `unpack`. What products of one factor sum to is
// multiplied by it, in float32, and added to the sums. Shifts, of all factors of a tile, are A of products with sums of
// x, both as sums of bfloat16.
//
// The tiles of 256 weights of a row are dealt to the blocks of a cluster, a range to each, whose sums are added in
// order. So all N give the same bits. Where a sum is not finite, see packed_rows_mma_cuda.h.
#pragma once

#include <array>

#include "cluster_cuda.h"
#include "packed_wgmma_columns_cuda.h"
#include "wgmma_cuda.h"

namespace baracuda {
namespace internal {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The factors of a tile that a lane has: of rows r and r + 8, those of `each` groups from `each` times c on.
template <class Format>
struct PackedWgmmaFactors {
  static constexpr int groups = Format::parts_share || Format::units_share ? 8 : 16, each = groups / 4;
  float scale[2][each], shift[2][each];

  __device__ void decode(const uint8_t* const (&row)[2], int c, int blocks_there) {
    constexpr int units_of_block = Format::block / 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if constexpr (Format::units_share) {
        packed::Factors both[2];
        Format::two_factors(row[h], c, both);
#pragma unroll
        for (int e = 0; e < 2; ++e) scale[h][e] = both[e].scale, shift[h][e] = both[e].shift;
      } else {
#pragma unroll
        for (int e = 0; e < each; ++e) {
          int group = each * c + e, unit = groups == 16 ? group / 2 : group, part = groups == 16 ? group % 2 : 0;
          packed::Factors by{};
          if (Format::block == packed_mma_tile || unit < blocks_there)
            by = Format::factors(row[h] + unit / units_of_block * Format::bytes, unit % units_of_block, part);
          scale[h][e] = by.scale, shift[h][e] = by.shift;
        }
      }
    }
  }
  __device__ void take(const PackedArrays& arrays, int c, int blocks_there) {
    if constexpr (each == 2)
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          scale[h][e] = 2 * c + e < blocks_there ? arrays.scale[h][e] : 0;
          shift[h][e] = Format::has_zero ? -(scale[h][e] * arrays.zero[h][e]) : 0;
        }
  }
};

// The rows of a block.
struct PackedWgmmaRows {
  int64_t batch, first_row;

  template <class Format>
  __device__ PackedWgmmaRows(const PackedRows<Format>& work, int64_t block) {
    int64_t groups = (work.rows + packed_wgmma_rows - 1) / packed_wgmma_rows;
    batch = block / groups, first_row = block % groups * packed_wgmma_rows;
  }
};

template <int N, class T, class Format>
__global__ void __launch_bounds__(packed_wgmma_threads, 2)
    packed_wgmma_kernel(const __grid_constant__ PackedRows<Format> work, Divisor<int32_t> group_blocks) {
  using namespace packed;
  using Memory = PackedWgmmaMemory<Format, N>;
  using OfTile = PackedWgmmaFactors<Format>;
  constexpr int units_of_block = Format::block / 32, parts = value_parts<Format>, stages = Memory::stages;
  extern __shared__ __align__(16) char memory[];
  __shared__ float table[16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
  unsigned char *entries = reinterpret_cast<unsigned char*>(memory), *room = entries + Memory::entries;
  if constexpr (Format::has_table) {
    if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
    if constexpr (Memory::reads_pairs)
      write_pair_entries<T, Format>(entries, packed_wgmma_threads);
    else
      write_entries<T, Format>(entries, lane, warp);
  }
  int at_lane = Memory::reads_pairs ? 8 * (lane % 16) : 4 * lane;

  unsigned cluster = blocks_of_cluster(), rank = blockIdx.x % cluster;
  PackedWgmmaRows rows(work, blockIdx.x / cluster);
  auto row_of = [&](int h) {
    return rows.batch * work.rows + min(rows.first_row + 16 * warp + 8 * h + r, work.rows - 1);
  };
  int all_tiles = int((work.blocks + Memory::blocks - 1) / Memory::blocks);
  int begin = int(int64_t(all_tiles) * rank / cluster), end = int(int64_t(all_tiles) * (rank + 1) / cluster);

  PackedTileCopies<Format> copies(work, c, row_of);
  PackedArrayLoads<Format> loads(work, row_of);
  PackedArrays arrays_ahead;
  bool has_columns = warp < N;
  PackedWgmmaColumns<T, Format, N> x(work, rows.batch);
  unsigned char *sums_x = room + 2 * Memory::stage_x,
                *stages_w = room + Memory::of_x + warp * Memory::weights + r * Memory::row_room;
  auto fetch = [&](int tile) {
    if (tile < end) copies.copy(tile, c, stages_w + (tile - begin) % stages * Memory::stage + 16 * c);
    __pipeline_commit();
  };
  if (begin < end) {
    if (has_columns) x.load(2 * begin);
    arrays_ahead = loads.load(begin, c, int(work.blocks), group_blocks);
  }
#pragma unroll
  for (int k = 0; k < stages - 1; ++k) fetch(begin + k);
  if (begin < end && has_columns) x.store(room, sums_x, 0);

  float acc[N][4] = {};
#pragma unroll 1
  for (int tile = begin; tile < end; ++tile) {
    int at = tile - begin;
    __pipeline_wait_prior(stages - 2);
    shared_to_wgmma();
    __syncthreads();
    // Loads come in the order in which they are begun, and x is in cache.
    if (has_columns) x.load(2 * tile + 1);
    PackedArrays arrays = arrays_ahead;
    if (tile + 1 < end) arrays_ahead = loads.load(tile + 1, c, int(work.blocks), group_blocks);
    fetch(tile + stages - 1);
    auto operand_of = [](const unsigned char* stage) {
      return wgmma_plain_operand(shared_address(stage), Memory::chunk);
    };
    unsigned char* sums_of_tile = sums_x + at % 2 * Memory::sums_x;
    const uint8_t* row[2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
      row[h] = stages_w + at % stages * Memory::stage + 8 * h * Memory::row_room + copies.past(h, tile);
    OfTile of_tile;
    if constexpr (Format::has_arrays)
      of_tile.take(arrays, c, int(work.blocks) - tile * Memory::blocks);
    else
      of_tile.decode(row, c, int(work.blocks) - tile * Memory::blocks);

    // Of a group, the products of `steps` times 16 weights, which are unpacked by pairs of groups where these share
    // bytes.
    constexpr int steps = OfTile::groups == 16 ? 1 : 2, buffers = N <= 4 ? 2 : 1, groups = OfTile::groups / 2;
    float sums[buffers][N][4] = {};
    uint32_t a[2][steps][parts][4];
    Bytes bytes[2][2][2];
    auto unpack_unit = [&](int u, int k) {
      int block = u / units_of_block, unit = u % units_of_block;
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if constexpr (Memory::reads_entries)
          bytes[k][h][0] = Format::packed(row[h] + block * Format::bytes, unit, c);
        else
          Format::unpack(row[h] + block * Format::bytes, unit, c, bytes[k][h][0], bytes[k][h][1]);
    };
    auto unit_of = [](int group, int k) {
      return OfTile::groups == 16 ? group / 2 : Format::units_share ? (group & ~1) + k : group;
    };
    auto part_of = [](int group, int k) { return Format::parts_share ? k : group % 2; };
    auto unpack = [&](int group) {
      if (Format::parts_share) {
        unpack_unit(group, 0);
      } else if (group % 2 == 0) {
        unpack_unit(unit_of(group, 0), 0);
        if (Format::units_share) unpack_unit(unit_of(group, 1), 1);
      }
    };
    auto prepare = [&](int group) {
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        int part = part_of(group, k), from = Format::units_share ? k : 0;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          uint32_t first[parts], second[parts];
          if constexpr (Memory::reads_pairs)
            entry_pairs_of_bytes<Format>(bytes[from][h][0], part, entries, at_lane, first, second);
          else if constexpr (Memory::reads_entries)
            entry_pairs<Format>(bytes[from][h][0], part, entries, at_lane, first, second);
          else
            exact_pairs<T, Format>(bytes[from][h][part], first[0], second[0]);
#pragma unroll
          for (int i = 0; i < parts; ++i) a[group % 2][k][i][h] = first[i], a[group % 2][k][i][2 + h] = second[i];
        }
      }
    };
    float scale[2];
    auto take_scale = [&](int group) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        scale[h] = __shfl_sync(~0u, of_tile.scale[h][group % OfTile::each], (lane & ~3) | group / OfTile::each);
        if constexpr (Format::entry_multiple > 1) scale[h] *= 1.0f / Format::entry_multiple;
      }
    };
    auto add = [&](int group) {
      wgmma_end(sums[group % buffers]);
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[n][e] = fmaf(scale[e / 2], sums[group % buffers][n][e], acc[n][e]);
    };
    unpack(0);
    prepare(0);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const uint64_t operand = operand_of(room + side * Memory::stage_x);
      if (side == 1) {
        shared_to_wgmma();
        __syncthreads();
        if (tile + 1 < end && has_columns) x.load(2 * tile + 2);
      }
      if constexpr (Memory::has_sums)
        if (side == 1) {
          const uint64_t of_sums = operand_of(sums_of_tile), next = of_sums + Memory::at_step(1);
          uint32_t pair[2][OfTile::each / 2][2];
#pragma unroll
          for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int e = 0; e < OfTile::each; e += 2)
              split_pair(of_tile.shift[h][e], of_tile.shift[h][e + 1], pair[h][e / 2]);
          wgmma_begin();
          if constexpr (OfTile::each == 2) {
            wgmma_of<BFloat16>(acc, {pair[0][0][0], pair[1][0][0], pair[0][0][1], pair[1][0][1]}, of_sums, true);
            wgmma_of<BFloat16>(acc, {pair[0][0][0], pair[1][0][0], pair[0][0][0], pair[1][0][0]}, next, true);
          } else {
            wgmma_of<BFloat16>(acc, {pair[0][0][0], pair[1][0][0], pair[0][1][0], pair[1][1][0]}, of_sums, true);
            wgmma_of<BFloat16>(acc, {pair[0][0][1], pair[1][0][1], pair[0][1][1], pair[1][1][1]}, of_sums, true);
            wgmma_of<BFloat16>(acc, {pair[0][0][0], pair[1][0][0], pair[0][1][0], pair[1][1][0]}, next, true);
          }
          wgmma_commit();
        }
#pragma unroll
      for (int of_half = 0; of_half < groups; ++of_half) {
        int group = side * groups + of_half;
        bool has_next = group + 1 < OfTile::groups, is_last = of_half == groups - 1;
        if (has_next) unpack(group + 1);
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < steps; ++k) {
          int u = unit_of(group, k), part = part_of(group, k);
          int first = u / units_of_block * Format::block + position<Format>(u % units_of_block, part, 0);
          int step = (Format::interleaved ? 2 * u + part : first / 16) - 8 * side;
#pragma unroll
          for (int i = 0; i < parts; ++i)
            wgmma_of<T>(sums[group % buffers], a[group % 2][k][i], operand + Memory::at_step(step), k + i > 0);
        }
        wgmma_commit();
        if constexpr (buffers == 1) {
          take_scale(group);
          if (has_next) prepare(group + 1);
          wgmma_wait<0>();
          if (Memory::has_sums && side == 1 && of_half == 0) wgmma_end(acc);
          add(group);
        } else {
          if (of_half > 0) {
            take_scale(group - 1);
            wgmma_wait<1>();
            if (Memory::has_sums && side == 1 && of_half == 1) wgmma_end(acc);
            add(group - 1);
          }
          if (has_next) prepare(group + 1);
          if (is_last) {
            take_scale(group);
            wgmma_wait<0>();
            add(group);
          }
        }
      }
      if (has_columns) {
        if (side == 0) x.store(room + Memory::stage_x, sums_of_tile, 1);
        if (side == 1 && tile + 1 < end) x.store(room, sums_x + (at + 1) % 2 * Memory::sums_x, 0);
      }
    }
  }

  __pipeline_wait_prior(0);
  __syncthreads();
  float* partial = reinterpret_cast<float*>(room);
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      partial[(8 * n + 2 * c + e % 2) * Memory::of_column + 16 * warp + e / 2 * 8 + r] = acc[n][e];
  sync_cluster(cluster);
  int block = int(blockIdx.x / cluster);
  keep(block);  // else what is computed from it takes registers all the time
  PackedWgmmaRows own(work, block);
  constexpr int elements = 8 * N * packed_wgmma_rows;
  for (int k = int(rank) * packed_wgmma_threads + int(threadIdx.x); k < elements;
       k += int(cluster) * packed_wgmma_threads) {
    int column = k / packed_wgmma_rows, of_block_row = k % packed_wgmma_rows;
    int64_t row = own.first_row + of_block_row;
    bool is_there = row < work.rows && column < work.count;
    float sum = 0;
#pragma unroll
    for (int other = 0; other < packed_wgmma_most_cluster; ++other)
      if (other < int(cluster)) sum += of_block(partial, other)[column * Memory::of_column + of_block_row];
    uint32_t again = __ballot_sync(~0u, is_there && !(fabsf(sum) <= 3.402823466e38f));
    for (; again != 0; again &= again - 1) {
      int which = __ffs(int(again)) - 1, at = k - lane + which;
      int64_t of_row = own.batch * work.rows + own.first_row + at % packed_wgmma_rows;
      int64_t of_x = (own.batch * work.count + at / packed_wgmma_rows) * work.columns();
      float product = packed_product<T>(work, of_row, static_cast<const T*>(work.x) + of_x, group_blocks, table);
      if (lane == which) sum = product;
    }
    if (is_there) static_cast<T*>(work.y)[(own.batch * work.count + column) * work.rows + row] = T(sum);
  }
  sync_cluster(cluster);  // others read what this one has
}

#else

template <int N, class T, class Format>
__global__ void packed_wgmma_kernel(const __grid_constant__ PackedRows<Format> work, Divisor<int32_t> group_blocks) {}

#endif

template <int N, class T, class Format>
Status packed_wgmma_by(const Executor& executor, const PackedRows<Format>& work) {
  constexpr int bytes = PackedWgmmaMemory<Format, N>::bytes;
  auto kernel = packed_wgmma_kernel<N, T, Format>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  int64_t groups = work.batches * ceil_div(work.rows, packed_wgmma_rows), best = 0;
  int64_t tiles = ceil_div(work.columns(), packed_mma_tile);
  // How many of each size a device has at a time, as of the first one that is asked.
  static const auto clusters = [&] {
    std::array<int, packed_wgmma_most_cluster + 1> most{};
    for (unsigned by = 1; by <= unsigned(packed_wgmma_most_cluster); ++by)
      if (!most_clusters(kernel, by, packed_wgmma_threads, size_t(bytes), most[by]).ok()) most[by] = 0;
    return most;
  }();
  unsigned cluster = 1;
  // Two blocks on a multiprocessor take 16/9 of the time of one. Four blocks and more of a cluster are two on each.
  for (unsigned by = 1; by <= unsigned(packed_wgmma_most_cluster); ++by) {
    bool is_alone = by < 4 && groups * by <= multiprocessors_of_device();
    int64_t turns = ceil_div(groups, std::max(clusters[by], 1)),
            time = turns * ceil_div(tiles, by) * (is_alone ? 9 : 16);
    if (by == 1 || (clusters[by] > 0 && time < best)) best = time, cluster = by;
  }
  return launch_clusters(executor, kernel, unsigned(groups * cluster), cluster, packed_wgmma_threads, size_t(bytes),
                         work, Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
}

template <class T, class Format>
Status packed_wgmma(const Executor& executor, const PackedRows<Format>& work) {
  return work.count > 32 ? packed_wgmma_by<8, T>(executor, work) : packed_wgmma_by<4, T>(executor, work);
}

template <class Format>
bool packed_wgmma_is_faster(const PackedRows<Format>& work) {
  constexpr int64_t least_weights = int64_t(1) << 20, most_groups = int64_t(1) << 27;
  if (work.count <= 16 || work.count > 64 || work.owner != nullptr) return false;
  if (work.rows * work.columns() < least_weights || work.batches * ceil_div(work.rows, packed_wgmma_rows) > most_groups)
    return false;
  int64_t blocks = work.batches * ceil_div(work.rows, 64), at_once = multiprocessors_of_device();
  // Of rows of few tiles, the other kernel takes less if its blocks of 64 rows are one turn.
  constexpr bool is_bytes = Format::has_arrays && !Format::interleaved;
  int64_t tiles = ceil_div(work.columns(), packed_mma_tile), few = 2 + Format::long_entries;
  if (work.count > 32) few = Format::long_entries || is_bytes || blocks > 48 ? 4 : 3;
  if (tiles <= few && blocks <= at_once) return false;
  // Of entries that are sums of two, it takes less if those blocks use all multiprocessors, and tiles are not few.
  return !Format::long_entries || work.count > 32 || (tiles <= 4 && blocks > at_once) ||
         10 * blocks < 9 * ceil_div(blocks, at_once) * at_once;
}

}  // namespace internal

template <class Format>
bool packed_rows_wgmma(const Executor& executor, const PackedRows<Format>& work, Status& status) {
#ifdef BARACUDA_SM90A
  if (!internal::is_hopper() || !internal::packed_wgmma_is_faster(work)) return false;
  status = work.dtype == RowDtype::bf16 ? internal::packed_wgmma<BFloat16>(executor, work)
                                        : internal::packed_wgmma<Half>(executor, work);
  return true;
#else
  return false;
#endif
}

// What a file compiles for a format.
#define BARACUDA_ROWS_WGMMA(FORMAT) \
  template bool packed_rows_wgmma(const Executor&, const PackedRows<packed::FORMAT>&, Status&);

}  // namespace baracuda
