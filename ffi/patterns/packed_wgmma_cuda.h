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
#include "packed_rows_mma_cuda.h"
#include "wgmma_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int packed_wgmma_warps = 8, packed_wgmma_threads = 32 * packed_wgmma_warps;
inline constexpr int packed_wgmma_rows = 16 * packed_wgmma_warps, packed_wgmma_most_cluster = 8;

// What a block has in shared memory: entries of tables, the halves of a tile of x, sums of two tiles of x, and the rows
// of some tiles of W.
template <class Format, int N>
struct PackedWgmmaMemory : PackedTile<Format> {
  using PackedTile<Format>::weights;
  static constexpr int most = (113 << 10) - 256;  // of two blocks on a multiprocessor, less what is static
  static constexpr bool reads_entries = Format::has_table, reads_pairs = Format::long_entries;
  static constexpr int entries = reads_pairs ? pair_entries : reads_entries ? 16 * entry_room : 0;
  static constexpr int chunk = N * 128;  // of eight steps, the 16 bytes of each column
  static constexpr bool has_sums = Format::has_shift || Format::has_zero;
  static constexpr int half = packed_mma_tile / 2, stage_x = half / 8 * chunk, sums_x = has_sums ? 4 * chunk : 0;
  static constexpr int of_x = 2 * (stage_x + sums_x);
  static __device__ uint64_t at_step(int k) { return uint64_t(k * 2 * chunk >> 4); }  // of an operand
  static constexpr int stage = packed_wgmma_warps * weights, fit = (most - entries - of_x) / stage;
  static constexpr int stages = fit < 4 ? fit : 4;
  static constexpr int of_column = packed_wgmma_rows + 4;  // partial sums, for which lanes have different banks
  static constexpr int staged = of_x + stages * stage, summed = 8 * N * of_column * int(sizeof(float));
  static constexpr int bytes = entries + (staged > summed ? staged : summed);
  static_assert(stages >= 2 && bytes <= most);
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Two floats as pairs of bfloat16: their nearest, and of what is left, the nearest again.
template <int count>
__device__ inline void split_pair(float low, float high, uint32_t (&pair)[count]) {
#pragma unroll
  for (int k = 0; k < count; ++k) {
    pair[k] = rounded_pair<BFloat16>(low, high);
    low -= __uint_as_float(pair[k] << 16), high -= __uint_as_float(pair[k] & 0xffff0000);
  }
}

// Half a tile of x on its way from memory to shared memory, by the first N warps. Of each 32 weights of one of a warp's
// 8 columns a lane has the quarter q.
template <class T, class Format, int N>
struct PackedWgmmaColumns {
  using Memory = PackedWgmmaMemory<Format, N>;
  static constexpr int groups = Memory::half / 32;
  const T* from;
  int at, left;  // of the elements from `from` on
  uint32_t word[groups][4];

  static __device__ int quarter() { return threadIdx.x / 16 % 2 * 2 + threadIdx.x % 2; }
  static __device__ int of_quarter(int q) {
    return Format::interleaved ? 4 * q : q / 2 * 2 * Memory::chunk + q % 2 * 8;
  }
  __device__ PackedWgmmaColumns(const PackedRows<Format>& work, int64_t batch) {
    int column = threadIdx.x / 32 * 8 + threadIdx.x / 2 % 8, q = quarter();
    bool there = column < work.count;
    at = column * 16 + of_quarter(q), left = there ? int(work.columns()) : 0;
    from = static_cast<const T*>(work.x) + (batch * work.count + (there ? column : 0)) * work.columns() + 8 * q;
  }
  __device__ void load(int half) {
    int element = half * Memory::half;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      bool inside = element + 32 * g < left;
      uint4 four = inside ? __ldg(reinterpret_cast<const uint4*>(from + (element + 32 * g))) : uint4{};
      word[g][0] = four.x, word[g][1] = four.y, word[g][2] = four.z, word[g][3] = four.w;
    }
  }
  // The first or second half of a tile, with the sums of all the tile's.
  __device__ void store(unsigned char* stage, unsigned char* sums_of_tile, int side) const {
#pragma unroll
    for (int g = 0; g < groups; ++g)
      if constexpr (Format::interleaved) {
#pragma unroll
        for (int k = 0; k < 4; ++k) *reinterpret_cast<uint32_t*>(stage + at + (4 * g + k) * Memory::chunk) = word[g][k];
      } else {
#pragma unroll
        for (int j = 0; j < 2; ++j)
          *reinterpret_cast<uint2*>(stage + at + (4 * g + j) * Memory::chunk) = {word[g][j], word[g][2 + j]};
      }
    if constexpr (Memory::has_sums) {
      int q = quarter();
      float sum[groups];
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        float some[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          float2 pair;
          if constexpr (std::is_same_v<T, BFloat16>)
            pair = {__uint_as_float(word[g][k] << 16), __uint_as_float(word[g][k] & 0xffff0000)};
          else
            pair = __half22float2(bit_cast<__half2>(word[g][k]));
          some[k] = pair.x + pair.y;
        }
        sum[g] = (some[0] + some[1]) + (some[2] + some[3]);
      }
      // Lanes that have the same keep a half of the groups each.
      auto exchange = [&](float& low, float& high, int other, bool keeps_high) {
        float sent = __shfl_xor_sync(~0u, keeps_high ? low : high, other);
        low = (keeps_high ? high : low) + sent;
      };
      auto sums = [&](int k) {
        return reinterpret_cast<uint16_t*>(sums_of_tile + at - of_quarter(q) + k * Memory::chunk) + 4 * side;
      };
      if constexpr (Format::parts_share || Format::units_share) {
        exchange(sum[0], sum[2], 16, q / 2), exchange(sum[1], sum[3], 16, q / 2), exchange(sum[0], sum[1], 1, q % 2);
        uint32_t parts[3];
        split_pair(sum[0], 0.0f, parts);
        sums(0)[q] = sums(1)[q] = uint16_t(parts[0]), sums(2)[q] = uint16_t(parts[1]), sums(3)[q] = uint16_t(parts[2]);
      } else {
        exchange(sum[0], sum[2], 1, q % 2), exchange(sum[1], sum[3], 1, q % 2);
        uint32_t parts[2];
        split_pair(sum[0], sum[1], parts);
#pragma unroll
        for (int k = 0; k < 2; ++k) reinterpret_cast<uint32_t*>(sums(2 * k + q / 2))[q % 2] = parts[k];
      }
    }
  }
};

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
  // Of entries that are sums of two, the other kernel takes less if its blocks of 64 rows use all multiprocessors.
  int64_t blocks = work.batches * ceil_div(work.rows, 64), at_once = multiprocessors_of_device();
  return !Format::long_entries || work.count > 32 || 10 * blocks < 9 * ceil_div(blocks, at_once) * at_once;
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
