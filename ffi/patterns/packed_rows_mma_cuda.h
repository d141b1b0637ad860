// The packed rows pattern on tensor cores, for 16-bit floats: a warp has 16 rows of W and N times 8 columns of x.
//
// A tile is 256 weights of each row. The values of 16 weights are A of a product and the elements of x B, of which lane
// c of four has the four weights of step c of `unpack`, whatever their order in the row is. What products of one factor
// sum to is multiplied by it: acc += scale * sum of values * x + shift * sum of x. Sums of x are products with ones.
//
// The tiles of a row are dealt to eight chains, each of which adds in order. A block has `teams` teams, to which the
// chains are dealt, and a team has G warps, of 16 rows each, which share tiles of x. Chains are added by halves. So all
// N and G give the same bits. Tiles of W and x come by asynchronous copies while those before are multiplied.
//
// Where a sum is not finite, its products are added again with whole weights, since 0 * infinity is NaN, and infinity
// in x is to give what W times it is.
#pragma once

#include "copy_async_cuda.h"
#include "device_cuda.h"
#include "keep_cuda.h"
#include "mma_cuda.h"
#include "packed_pairs_cuda.h"
#include "packed_row_sums_cuda.h"
#include "packed_rows.h"
#include "packed_tile_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int packed_chains = 8, packed_mma_threads = 32 * packed_chains;

// What a block has in shared memory: for each warp two stages of 16 rows of a tile and the decoded factors of one, and
// for each team two stages of the tile's columns of x.
template <class Format, int N, int G>
struct PackedMmaMemory : PackedTile<Format> {
  using PackedTile<Format>::weights;
  static constexpr int teams = packed_chains / G;
  static constexpr int column_room = packed_mma_tile * 2;
  // Of each row, for each 16 or 32 weights: a scale, and maybe a shift.
  static constexpr int groups = Format::parts_share || Format::units_share ? 8 : 16, factors = groups * 16;
  static constexpr int decoded = Format::has_arrays ? 0 : (1 + Format::has_shift) * factors * int(sizeof(float));

  // Entries of tables are read where that leaves registers that a thread needs, or takes fewer instructions.
  static constexpr bool reads_entries = Format::has_table && (N == 1 || Format::long_entries);
  static constexpr bool reads_pairs = reads_entries && Format::long_entries && N == 1;  // both of a byte at once
  static constexpr int entries = reads_pairs ? pair_entries : reads_entries ? 16 * entry_room : 0;

  static __host__ __device__ int bytes(int held) {
    int staged = 2 * (packed_chains * weights + teams * held * column_room) + packed_chains * decoded;
    int summed = packed_chains * 16 * 8 * N * int(sizeof(float));
    return entries + (staged > summed ? staged : summed);
  }
};

// Waits for the `threads` threads of a team.
__device__ inline void team_sync(int team, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory");
}

// On a multiprocessor, which leaves 128 or 255 registers a thread.
constexpr int packed_mma_blocks(int n) { return n <= 2 ? 2 : 1; }

template <int N, int G, class T, class Format>
__global__ void __launch_bounds__(packed_mma_threads, packed_mma_blocks(N))
    packed_mma_kernel(const __grid_constant__ PackedRows<Format> work, int held, Divisor<int32_t> group_blocks) {
  using namespace packed;
  using Memory = PackedMmaMemory<Format, N, G>;
  constexpr int units_of_block = Format::block / 32, parts = value_parts<Format>;
  constexpr bool has_sums = sums_of_x<T, Format>;
  constexpr float excess = pairs_excess<T, Format>;
  constexpr uint32_t ones = std::is_same_v<T, BFloat16> ? 0x3f803f80 : 0x3c003c00;
  extern __shared__ __align__(16) char memory[];
  __shared__ float table[16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
  EntryBytes of_entries{};
  if constexpr (Format::has_table) {
    if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
    if constexpr (Memory::reads_pairs) {
      write_pair_entries<T, Format>(reinterpret_cast<unsigned char*>(memory), packed_mma_threads);
      __syncthreads();
    } else if constexpr (Memory::reads_entries) {
      constexpr EntryWords all = entry_words<T, Format>();
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (i / 2 == warp) reinterpret_cast<uint32_t*>(memory)[i * (entry_room / 4) + lane] = all.word[i];
      __syncthreads();
    } else {
      __shared__ EntryBytes entries;
      static constexpr EntryBytes all = entry_bytes<T, Format>();
      if (threadIdx.x < 8) entries.word[threadIdx.x / 4][threadIdx.x % 4] = all.word[threadIdx.x / 4][threadIdx.x % 4];
      __syncthreads();
      of_entries = entries;
    }
  }
  int team = warp / G, member = warp % G;

  unsigned char *entries = reinterpret_cast<unsigned char*>(memory), *room = entries + Memory::entries;
  int at_lane = Memory::reads_pairs ? 8 * (lane % 16) : 4 * lane;
  keep(at_lane);
  unsigned char* stages_x = room + 2 * packed_chains * Memory::weights;
  unsigned char* weights_of_warp = room + warp * 2 * Memory::weights;
  int lane_weights = warp * 2 * Memory::weights + r * Memory::row_room;
  keep(lane_weights);
  unsigned char* x_of_team = stages_x + team * 2 * held * Memory::column_room;
  float* decoded =
      reinterpret_cast<float*>(stages_x + Memory::teams * 2 * held * Memory::column_room + warp * Memory::decoded);

  int64_t columns = work.columns(), row_bytes = work.blocks * Format::bytes;
  int64_t first_row = (int64_t(blockIdx.x) * G + member) * 16, first_column = int64_t(blockIdx.y) * held;
  int tiles = int((work.blocks + Memory::blocks - 1) / Memory::blocks);
  int present = int(min(int64_t(held), work.count - first_column));
  // Rows and columns that are not there are computed from others or from what is in memory, and not written.
  auto row_of = [&](int k) { return min(first_row + k, work.rows - 1); };
  // Columns of x are in chunks of 16 bytes, pairs of which are permuted so that four columns are in different banks:
  // `at_pair` has the position of the lane's weights in each of the four pairs of 128 bytes.
  int at_column[N], at_pair[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) at_pair[k] = (32 * k + 2 * position<Format>(0, 0, c)) ^ r % 4 * 32;
#pragma unroll
  for (int n = 0; n < N; ++n) at_column[n] = 8 * n + r < held ? (8 * n + r) * Memory::column_room : 0;

  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    int64_t matrix = work.matrix(batch), first_of_matrix = matrix * work.rows;
    int used = matrix < 0 ? 0 : tiles;  // the same for all threads of the block
    PackedTileCopies<Format> copies(work, c, [&](int h) { return first_of_matrix + row_of(8 * h + r); });
    const T* from_x = static_cast<const T*>(work.x) + (batch * work.count + first_column + member) * columns + lane * 8;
    keep(from_x);
    const uint8_t* from_factors = work.weights.data + (first_of_matrix + row_of(lane % 16)) * row_bytes;
    PackedArrayLoads<Format> loads(work, [&](int h) { return first_of_matrix + row_of(8 * h + r); });
    PackedArrays arrays_ahead;

    auto fetch = [&](int tile, int stage) {
      copies.copy(tile, c, room + lane_weights + stage * Memory::weights + 16 * c);
      arrays_ahead = loads.load(tile, c, int(work.blocks), group_blocks);
      int element = tile * packed_mma_tile;
      bool inside = Memory::blocks == 1 || element + lane * 8 < int(columns);
      const T* chunk = inside ? from_x + element : from_x;
      unsigned char* to = x_of_team + stage * held * Memory::column_room;
#pragma unroll 1
      for (int column = member; column < present; column += G) {
        copy_async(to + column * Memory::column_room + (lane * 16 ^ column % 4 * 32), chunk, inside ? 16 : 0);
        chunk += G * columns;
      }
    };

    // The tiles of a team in their order: those of chains team, team + 4, team + 2, team + 6, as far as they are its
    // own.
    auto first_of_chain = [&](int chain) { return team + chain % 2 * 4 + chain / 2 * 2; };
    int next_chain = 0, next = team;
    auto fetch_next = [&](int stage) {
      while (next >= used && next_chain + 1 < G) next = first_of_chain(++next_chain);
      if (next < used) fetch(next, stage);
      next += packed_chains;
      __pipeline_commit();
    };
    fetch_next(0);

    float total[N][4] = {}, pair[N][4] = {}, acc[N][4];
    int stage = 0;
#pragma unroll 1
    for (int chain = 0; chain < G; ++chain) {
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[n][e] = 0;
#pragma unroll 1
      for (int tile = first_of_chain(chain); tile < used; tile += packed_chains, stage ^= 1) {
        __pipeline_wait_prior(0);
        // All have what they copied, and are through with the other stage.
        if constexpr (G == 1)
          __syncwarp();
        else
          team_sync(team, G * 32);
        PackedArrays arrays = arrays_ahead;
        if constexpr (Format::has_arrays)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (tile * Memory::blocks + 2 * c + e >= int(work.blocks)) arrays.scale[0][e] = arrays.scale[1][e] = 0;
        fetch_next(stage ^ 1);

        unsigned char* rows = weights_of_warp + stage * Memory::weights;
        if constexpr (!Format::has_arrays) {
          const uint8_t* row = rows + lane % 16 * Memory::row_room + Memory::past(from_factors, tile);
          int there = int(work.blocks) - tile * Memory::blocks;
          Factors by[Memory::factors / 32] = {};
#pragma unroll
          for (int k = 0; k < Memory::factors / 32; ++k) {
            int group = 2 * k | lane / 16;
            int unit = Memory::groups == 16 ? group / 2 : Format::units_share ? group & ~1 : group;
            int part = Memory::groups == 16 || Format::units_share ? group % 2 : 0;
            if (Memory::blocks == 1 || unit < there)
              by[k] = Format::factors(row + unit / units_of_block * Format::bytes, unit % units_of_block, part);
          }
#pragma unroll
          for (int k = 0; k < Memory::factors / 32; ++k)
            if constexpr (Format::has_shift)
              reinterpret_cast<float2*>(decoded)[32 * k + lane] = {
                  by[k].scale, excess > 0 ? fmaf(-excess, by[k].scale, by[k].shift) : by[k].shift};
            else
              decoded[32 * k + lane] = by[k].scale;
          __syncwarp();
        }
        const uint8_t* row[2];
#pragma unroll
        for (int h = 0; h < 2; ++h)
          row[h] = room + lane_weights + stage * Memory::weights + 8 * h * Memory::row_room + copies.past(h, tile);
        const unsigned char* tile_x = x_of_team + stage * held * Memory::column_room;

        constexpr int slots = Format::parts_share ? 1 : 2;
        float sums[slots][N][parts][4], sums_x[slots][N][4], of_tile[N][4] = {}, of_units[N][4];
        auto add = [&](int group, int slot) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            int of = group * 16 + 8 * h + r, from = (lane & ~3) | group / 2;  // the lane that has read the group's
            float scale, shift = 0;
            if constexpr (Format::has_shift) {
              float2 both = reinterpret_cast<const float2*>(decoded)[of];
              scale = both.x, shift = both.y;
            } else if constexpr (Format::has_arrays) {
              scale = __shfl_sync(~0u, arrays.scale[h][group % 2], from);
            } else {
              scale = decoded[of];
            }
            if constexpr (Format::entry_multiple > 1) scale *= 1.0f / Format::entry_multiple;
            if constexpr (Format::has_zero)
              shift = -(scale * (excess + __shfl_sync(~0u, arrays.zero[h][group % 2], from)));
            else if constexpr (has_sums && !Format::has_shift)
              shift = -(scale * excess);
#pragma unroll
            for (int n = 0; n < N; ++n)
#pragma unroll
              for (int e = 2 * h; e < 2 * h + 2; ++e) {
                float& sum = of_units[n][e];
                float product = sums[slot][n][0][e];
                if constexpr (Memory::reads_pairs)
                  product = sums[slot][n][h][e % 2] + sums[slot][n][h][2 + e % 2];
                else if constexpr (parts == 2)
                  product += sums[slot][n][1][e];
                sum = fmaf(scale, product, sum);
                if constexpr (has_sums) sum = fmaf(shift, sums_x[slot][n][e], sum);
              }
          }
        };
        // By halves also: two units, four, and all eight.
        float of_two[N][4];
#pragma unroll(N == 1 ? 4 : 1)
        for (int first = 0; first < 8; first += 2) {
#pragma unroll
          for (int n = 0; n < N; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) of_units[n][e] = 0;
#pragma unroll
          for (int side = 0; side < 2; ++side) {
            int u = first + side, block = u / units_of_block, unit = u % units_of_block;
            bool begins = side == 0 || !Format::units_share, ends = side == 1 || !Format::units_share;
            if (begins) {
#pragma unroll
              for (int slot = 0; slot < slots; ++slot)
#pragma unroll
                for (int n = 0; n < N; ++n)
#pragma unroll
                  for (int e = 0; e < 4; ++e) {
#pragma unroll
                    for (int k = 0; k < parts; ++k) sums[slot][n][k][e] = 0;
                    sums_x[slot][n][e] = 0;
                  }
            }
            Bytes bytes[2][2];
#pragma unroll
            for (int h = 0; h < 2; ++h)
              if constexpr (Memory::reads_entries)
                bytes[h][0] = Format::packed(row[h] + block * Format::bytes, unit, c);
              else
                Format::unpack(row[h] + block * Format::bytes, unit, c, bytes[h][0], bytes[h][1]);
#pragma unroll
            for (int part = 0; part < 2; ++part) {
              int slot = Format::parts_share ? 0 : part;
              uint32_t first_pair[2][parts], second_pair[2][parts];
#pragma unroll
              for (int h = 0; h < 2; ++h)
                if constexpr (Memory::reads_pairs)
                  entry_pairs_of_bytes<Format>(bytes[h][0], part, entries, at_lane, first_pair[h], second_pair[h]);
                else if constexpr (Memory::reads_entries)
                  entry_pairs<Format>(bytes[h][0], part, entries, at_lane, first_pair[h], second_pair[h]);
                else
                  value_pairs<T, Format>(bytes[h][part], first_pair[h], second_pair[h], of_entries);
              int at = 2 * (block * Format::block + position<Format>(unit, part, 0));  // of lane 0
#pragma unroll
              for (int n = 0; n < N; ++n) {
                uint2 with = *reinterpret_cast<const uint2*>(tile_x + at_column[n] + at_pair[at / 32 % 4] + (at & ~96));
                uint32_t b[2] = {with.x, with.y};
#pragma unroll
                for (int k = 0; k < parts; ++k) {
                  uint32_t a[4] = {first_pair[0][k], first_pair[1][k], second_pair[0][k], second_pair[1][k]};
                  // Of half k of the rows, and in place of the other half what is left of the entries: as they are
                  // read.
                  if constexpr (Memory::reads_pairs)
                    a[0] = first_pair[k][0], a[1] = first_pair[k][1], a[2] = second_pair[k][0],
                    a[3] = second_pair[k][1];
                  multiply_add<T>(sums[slot][n][k], a, b);
                }
                if constexpr (has_sums) {
                  uint32_t a[4] = {ones, ones, ones, ones};
                  multiply_add<T>(sums_x[slot][n], a, b);
                }
              }
            }
            if (ends) {
              if constexpr (Format::parts_share) {
                add(u, 0);
              } else if constexpr (Format::units_share) {
                add(first, 0), add(first + 1, 1);
              } else {
                add(2 * u, 0), add(2 * u + 1, 1);
              }
            }
          }
#pragma unroll
          for (int n = 0; n < N; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if (first % 4 == 0)
                of_two[n][e] = of_units[n][e];
              else
                of_tile[n][e] += of_two[n][e] + of_units[n][e];
            }
        }
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) acc[n][e] += of_tile[n][e];
      }
      // By halves: chains k and k + 4, then k and k + 2 of those, as far as they are the team's.
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if constexpr (G == 1) {
            total[n][e] = acc[n][e];
          } else {
            pair[n][e] = chain % 2 ? pair[n][e] + acc[n][e] : acc[n][e];
            if (chain == 1) total[n][e] = pair[n][e];
            if (chain == 3) total[n][e] += pair[n][e];
          }
        }
    }

    __pipeline_wait_prior(0);
    __syncthreads();
    constexpr int block_rows = 16 * G, block_columns = 8 * N, elements = block_rows * block_columns;
    float* partial = reinterpret_cast<float*>(room);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        partial[team * elements + (8 * n + 2 * c + e % 2) * block_rows + member * 16 + e / 2 * 8 + r] = total[n][e];
    __syncthreads();
    for (int k = threadIdx.x; k < elements; k += packed_mma_threads) {
      int64_t block_row = int64_t(blockIdx.x) * block_rows, row = block_row + k % block_rows;
      int64_t column = first_column + k / block_rows;
      bool there = row < work.rows && column < work.count;
      float sum[Memory::teams];
#pragma unroll
      for (int t = 0; t < Memory::teams; ++t) sum[t] = partial[t * elements + k];
#pragma unroll
      for (int half = Memory::teams / 2; half > 0; half /= 2)
#pragma unroll
        for (int t = 0; t < half; ++t) sum[t] += sum[t + half];
      uint32_t again = __ballot_sync(~0u, there && !(fabsf(sum[0]) <= 3.402823466e38f));
      for (; again != 0; again &= again - 1) {
        int which = __ffs(int(again)) - 1, of = k - lane + which;
        float product = packed_product<T>(
            work, work.matrix(batch) * work.rows + block_row + of % block_rows,
            static_cast<const T*>(work.x) + (batch * work.count + first_column + of / block_rows) * columns,
            group_blocks, table);
        if (lane == which) sum[0] = product;
      }
      if (there) static_cast<T*>(work.y)[(batch * work.count + column) * work.rows + row] = T(sum[0]);
    }
    __syncthreads();  // before tiles are written again
  }
}

// `held` columns of x at a time.
template <int N, int G, class T, class Format>
Status packed_mma_by(const Executor& executor, const PackedRows<Format>& work, int held) {
  constexpr int64_t most_blocks_z = 65535;
  int bytes = PackedMmaMemory<Format, N, G>::bytes(held);
  auto kernel = packed_mma_kernel<N, G, T, Format>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  dim3 grid(unsigned(ceil_div(work.rows, 16 * G)), unsigned(ceil_div(work.count, held)),
            unsigned(std::min(work.batches, most_blocks_z)));
  kernel<<<grid, packed_mma_threads, size_t(bytes), executor.stream>>>(
      work, held, Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
  return launched();
}

// More columns at a time take more memory. Of up to eight columns, blocks of 32 rows read x less often, if there are
// enough for the multiprocessors, and otherwise blocks of 16 rows keep more of these busy.
template <class T, class Format>
Status packed_mma(const Executor& executor, const PackedRows<Format>& work) {
  int most = 0;
  if (Status status = most_shared_memory(most); !status.ok()) return status;
  auto held = [&](int columns) { return int(std::min<int64_t>(work.count, columns)); };
  if (work.count > 16 && PackedMmaMemory<Format, 4, 4>::bytes(held(32)) <= most)
    return packed_mma_by<4, 4, T>(executor, work, held(32));
  if (work.count > 8 && PackedMmaMemory<Format, 2, 2>::bytes(held(16)) <= most)
    return packed_mma_by<2, 2, T>(executor, work, held(16));
  int64_t blocks = work.batches * ceil_div(work.rows, 32);
  if (10 * blocks >= 7 * multiprocessors_of_device() && PackedMmaMemory<Format, 1, 2>::bytes(held(8)) <= most)
    return packed_mma_by<1, 2, T>(executor, work, held(8));
  int columns = held(8);
  while (columns > 1 && PackedMmaMemory<Format, 1, 1>::bytes(columns) > most) columns /= 2;
  return packed_mma_by<1, 1, T>(executor, work, columns);
}

}  // namespace internal

}  // namespace baracuda
