// The packed rows pattern on tensor cores, for one row of x in a 16-bit float, with weights straight to registers.
//
// A tile is 16 rows of 256 weights. Lane 4 r + c has 16 bytes of each half of the rows r and r + 8, which are A of
// products as they are unpacked. B has the elements of x in the same order: its column n has those of group n of the
// tile, and 0 where a lane's weights are of another group. So a lane has the sums of the groups 2 c and 2 c + 1 of two
// rows, whose factors it decodes itself.
//
// A block has the tiles of several groups of 16 rows, which its warps take in turn, and x and its sums by 32 in shared
// memory. A warp adds the tiles of a group of rows in their order, and the block then adds its warps.
#pragma once

#include "divisor.h"
#include "keep_cuda.h"
#include "mma_cuda.h"
#include "packed_pairs_cuda.h"
#include "packed_row_tile_cuda.h"
#include "packed_rows.h"
#include "packed_rows_mma_cuda.h"
#include "shared_memory_cuda.h"

#include <algorithm>

namespace baracuda {
namespace internal {

// Formats of four bits with 16 bytes of weights to a lane: integers by group, and Q4_K.
template <class Format>
inline constexpr bool packed_direct_serves = !Format::has_table && ((Format::has_arrays && Format::interleaved) ||
                                                                    (Format::units_share && Format::bytes == 144));

// What a lane has of a tile: 16 bytes of both halves of two rows, and what their factors are computed from.
template <class Format>
struct PackedDirectTile {
  static constexpr bool has_heads = !Format::has_arrays;
  static constexpr int blocks = packed_mma_tile / Format::block;
  uint4 weights[2][2];
  std::conditional_t<has_heads, uint4[2], PackedArrays> factors;
};

// Of bytes that are read once. Their neighbors come to the second-level cache.
__device__ inline uint4 load_once(const uint8_t* from) {
  uint4 some;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(some.x), "=r"(some.y), "=r"(some.z), "=r"(some.w)
               : "l"(__cvta_generic_to_global(from)));
  return some;
}

__device__ inline uint32_t word_of(const uint4& some, int k) {
  return k == 0 ? some.x : k == 1 ? some.y : k == 2 ? some.z : some.w;
}

template <int warps, int blocks_at_once, class T, class Format>
__global__ void __launch_bounds__(32 * warps, blocks_at_once)
    packed_row_direct_kernel(const __grid_constant__ PackedRows<Format> work, int groups_of_block,
                             Divisor<int32_t> group_blocks) {
  using namespace packed;
  using Tile = PackedDirectTile<Format>;
  constexpr int threads = 32 * warps;
  constexpr bool has_sums = sums_of_x<T, Format>;
  constexpr float excess = pairs_excess<T, Format>;
  extern __shared__ __align__(16) char memory[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
  int blocks = int(work.blocks), tiles = (blocks + Tile::blocks - 1) / Tile::blocks;
  int64_t columns = work.columns(), first_of_block = int64_t(blockIdx.x) * groups_of_block * 16;
  int rows = int(min(int64_t(groups_of_block) * 16, work.rows - first_of_block));
  uint4* x_chunks = reinterpret_cast<uint4*>(memory);              // eight elements each
  float* x_sums = reinterpret_cast<float*>(memory + tiles * 512);  // of 32 elements each
  float* partial = x_sums + tiles * 8;                             // by group of rows, warp and row
  uint32_t row_bytes = uint32_t(work.blocks * Format::bytes);
  bool pairs_share = group_blocks.value % 2 == 0;

  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    int64_t matrix = work.matrix(batch), first_of_matrix = matrix * work.rows;
    int units = matrix < 0 ? 0 : (rows + 15) / 16 * tiles;

    // Loads come in the order in which they are begun, so those of x are before the weights.
    const uint4* from_x = reinterpret_cast<const uint4*>(static_cast<const T*>(work.x) + batch * columns);
    auto load_x = [&](int k) { return units > 0 && k < columns / 8 ? __ldg(from_x + k) : uint4{}; };
    constexpr int early = 4;
    uint4 early_x[early];
#pragma unroll
    for (int k = 0; k < early; ++k) early_x[k] = load_x(threadIdx.x + k * threads);

    // Rows that are not there are computed from others, and not written. Offsets from the block's first are of 32 bits.
    int64_t first_row = first_of_matrix + first_of_block;
    const uint8_t* data = work.weights.data + first_row * row_bytes;
    keep(data);
    const float *scale = nullptr, *zero = nullptr;
    if constexpr (Format::has_arrays) scale = work.weights.scale + first_row * work.groups, keep(scale);
    if constexpr (Format::has_zero) zero = work.weights.zero + first_row * work.groups, keep(zero);
    uint32_t last = uint32_t(rows) * row_bytes - 16;
    int next_tile = warp, next_group = 0;
    uint32_t at_row[2], at_factors[2];
    auto begin_group = [&] {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        uint32_t row = uint32_t(min(next_group * 16 + 8 * h + r, rows - 1));
        at_row[h] = row * row_bytes, at_factors[h] = row * uint32_t(work.groups);
      }
    };
    auto find_group = [&] {
      if (next_tile < tiles) return;
      do next_tile -= tiles, ++next_group;
      while (next_tile >= tiles);
      begin_group();
    };
    auto fetch = [&](Tile& to) {
      int group[2];
      if constexpr (Format::has_arrays) {
        group[0] = group_blocks.quotient(min(next_tile * 8 + 2 * c, blocks - 1));
        group[1] = pairs_share ? group[0] : group_blocks.quotient(min(next_tile * 8 + 2 * c + 1, blocks - 1));
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if constexpr (Tile::has_heads) {
          const uint8_t* from = data + (at_row[h] + next_tile * Format::bytes);
          to.factors[h] = load_once(from);
#pragma unroll
          for (int j = 0; j < 2; ++j) to.weights[h][j] = load_once(from + 16 + 64 * j + 16 * c);
        } else {
          // After the end of a row they are others', and x is 0.
#pragma unroll
          for (int j = 0; j < 2; ++j)
            to.weights[h][j] = load_once(data + min(at_row[h] + next_tile * 128 + 64 * j + 16 * c, last));
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            to.factors.scale[h][e] = __ldg(scale + (at_factors[h] + group[e]));
            if constexpr (Format::has_zero) to.factors.zero[h][e] = __ldg(zero + (at_factors[h] + group[e]));
          }
        }
      }
      next_tile += warps;
      find_group();
    };
    begin_group();
    find_group();
    int tile = next_tile, group = next_group;
    Tile tile_of[2];
    if (warp < units) fetch(tile_of[0]);

    auto store_x = [&](int k, uint4 some) {
      if constexpr (has_sums) {
        float sum = 0;
        const T* each = reinterpret_cast<const T*>(&some);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += float(each[j]);
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (k % 4 == 0) x_sums[k / 4] = sum;
      }
      // Of neighbors that share a byte, the first ones are multiplied together, and the second ones.
      if constexpr (Format::interleaved)
        some = {__byte_perm(some.x, some.y, 0x5410), __byte_perm(some.z, some.w, 0x5410),
                __byte_perm(some.x, some.y, 0x7632), __byte_perm(some.z, some.w, 0x7632)};
      x_chunks[k] = some;
    };
#pragma unroll
    for (int k = 0; k < early; ++k)
      if (int at = threadIdx.x + k * threads; at < tiles * 32) store_x(at, early_x[k]);
    for (int k = threadIdx.x + early * threads; k < tiles * 32; k += threads) store_x(k, load_x(k));
    for (int k = threadIdx.x; k < groups_of_block * warps * 16; k += threads) partial[k] = 0;
    __syncthreads();

    // The chunks of x that the lane multiplies with; others multiply with 0.
    constexpr int chunks = Tile::has_heads ? 2 : 4;
    bool owner = Tile::has_heads ? c / 2 == r / 2 % 2 : c == r % 4;
    const uint4* at_x = x_chunks + 4 * r + (Tile::has_heads ? 2 * (c % 2) : 0);
    uint4 x[chunks] = {};
    float acc[2] = {};
    auto multiply = [&](const Tile& of) {
      if (owner)
#pragma unroll
        for (int k = 0; k < chunks; ++k) x[k] = at_x[tile * 32 + k];
      // Of the units whose halves are of different groups by half of a byte and of the tile, else by half of the tile.
      constexpr int kinds = Tile::has_heads ? 4 : 2;
      float sums[kinds][4] = {};
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int w = 0; w < 4; ++w)
#pragma unroll
          for (int side = 0; side < 2; ++side) {
            uint32_t first[2][1], second[2][1];
#pragma unroll
            for (int h = 0; h < 2; ++h)
              value_pairs<T, Format>(field<15>(word_of(of.weights[h][j], w), 4 * side), first[h], second[h],
                                     EntryBytes{});
            uint32_t a[4] = {first[0][0], first[1][0], second[0][0], second[1][0]};
            const uint4& with = x[Tile::has_heads ? w / 2 : w];
            int at = 2 * (Tile::has_heads ? w % 2 : side);
            uint32_t b[2] = {word_of(with, at), word_of(with, at + 1)};
            multiply_add<T>(sums[Tile::has_heads ? 2 * j + side : j], a, b);
          }
      float2 sums_x = {};
      if constexpr (has_sums) sums_x = reinterpret_cast<const float2*>(x_sums)[tile * 4 + c];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Factors by[2];
        if constexpr (Tile::has_heads) {
          Format::two_factors(reinterpret_cast<const uint8_t*>(&of.factors[h]), c, by);
        } else {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            by[e].scale = of.factors.scale[h][e], by[e].shift = 0;
            if constexpr (Format::has_zero) by[e].shift = -(by[e].scale * of.factors.zero[h][e]);
          }
        }
        float sum = 0;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          int side = Tile::has_heads ? e : 0;
          float mine = c < 2 ? sums[side][2 * h + e] : sums[kinds / 2 + side][2 * h + e];
          if constexpr (excess > 0) by[e].shift = fmaf(-excess, by[e].scale, by[e].shift);
          sum = fmaf(by[e].scale, mine, sum);
          if constexpr (has_sums) sum = fmaf(by[e].shift, e ? sums_x.y : sums_x.x, sum);
        }
        acc[h] += sum;
      }
    };
    auto end_group = [&] {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float sum = acc[h];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (c == 0) partial[(group * warps + warp) * 16 + 8 * h + r] = sum;
        acc[h] = 0;
      }
    };

    int left = units > warp ? (units - warp + warps - 1) / warps : 0;
    int none = groups_of_block >> 31;  // 0, which the compiler does not know
#pragma unroll 1
    while (left > 0)
#pragma unroll
      for (int d = 0; d < 2; ++d)
        if (left > 0) {
          // The next tile's loads begin when this one's have ended, and before it is multiplied. A wait for one set of
          // loads waits for all that have begun, so `left` seems to depend on what is waited for.
          const Tile& now = tile_of[d];
          uint32_t some = 0;
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            some |= now.weights[h][0].x | now.weights[h][1].x;
            if constexpr (Tile::has_heads)
              some |= now.factors[h].x;
            else
              some |= __float_as_uint(now.factors.scale[h][0]) | __float_as_uint(now.factors.scale[h][1]);
          }
          left += int(some) & none;
          if (left > 1) fetch(tile_of[1 - d]);
          multiply(now);
          --left, tile += warps;
          if (tile >= tiles || left == 0) end_group();
          while (tile >= tiles) tile -= tiles, ++group;
        }

    __syncthreads();
    for (int k = threadIdx.x; k < (rows + 31) / 32 * 32; k += threads) {
      float sum = 0;
#pragma unroll
      for (int t = 0; t < warps; ++t) sum += k < rows ? partial[(k / 16 * warps + t) * 16 + k % 16] : 0;
      write_row_sums<T>(work, batch, first_of_matrix, first_of_block + k - lane, k < rows, sum, group_blocks, nullptr);
    }
    __syncthreads();  // before x and sums are written again
  }
}

// How many groups of rows a block has: those that all blocks need the fewest steps for, turn by turn, of which one is a
// tile of each warp, and to begin and to end takes some two.
template <class Format>
struct PackedDirectPlan {
  int64_t groups, of_block, steps, bytes;

  PackedDirectPlan(const PackedRows<Format>& work, int warps, int blocks_at_once) : groups(ceil_div(work.rows, 16)) {
    constexpr int64_t most_groups = 32, more_turns = 4, begin_and_end = 2;
    int64_t tiles = ceil_div(work.blocks, PackedDirectTile<Format>::blocks);
    int64_t slots = std::max<int64_t>(1, int64_t(blocks_at_once) * multiprocessors_of_device());
    int64_t fewest = ceil_div(work.batches * ceil_div(groups, most_groups), slots);
    steps = 0;
    for (int64_t turns = fewest; turns < fewest + more_turns; ++turns) {
      int64_t of = ceil_div(groups, std::max<int64_t>(ceil_div(groups, most_groups), slots * turns / work.batches));
      int64_t needed = ceil_div(work.batches * ceil_div(groups, of), slots);
      int64_t all = needed * (ceil_div(of * tiles, warps) + begin_and_end);
      if (turns == fewest || all < steps) steps = all, of_block = of;
    }
    bytes = tiles * (packed_mma_tile * 2 + 8 * int64_t(sizeof(float))) + of_block * warps * 16 * int64_t(sizeof(float));
  }
};

template <int warps, int blocks_at_once, class T, class Format>
Status packed_row_direct_by(const Executor& executor, const PackedRows<Format>& work,
                            const PackedDirectPlan<Format>& plan) {
  constexpr int64_t most_blocks_z = 65535, of_statics = 2048;
  auto kernel = packed_row_direct_kernel<warps, blocks_at_once, T, Format>;
  if (Status status = allow_dynamic_memory(kernel, plan.bytes); !status.ok()) return status;
  // What blocks do not take is first-level cache, where loads that are on the way have room: with most of it for shared
  // memory Q4_K took 26 us instead of 17.
  int all = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  int64_t taken = blocks_at_once * (plan.bytes + of_statics);
  if (all > 0) {
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                             int(std::min<int64_t>(100, ceil_div(100 * taken, all))));
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
  }
  dim3 grid(unsigned(ceil_div(plan.groups, plan.of_block)), 1, unsigned(std::min(work.batches, most_blocks_z)));
  kernel<<<grid, 32 * warps, size_t(plan.bytes), executor.stream>>>(
      work, int(plan.of_block), Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
  return launched();
}

// Whether the kernel is taken. On an H200, in us, that of packed_row_mma_cuda.h and this one: Q4_K of [3584, 3584] 5.5
// and 5.9, of [4096, 4096] 6.3 and 6.2; integers of [2048, 4096] 4.4 and 4.7, of [3584, 3584] 5.7 and 5.5, of [1024,
// 8192] 6.4 and 5.4.
template <class Format>
bool packed_direct_is_faster(const PackedRows<Format>& work) {
  constexpr int64_t megabyte = 1 << 20, wide = 8192;
  int most = 0;
  if (!most_shared_memory(most).ok() || PackedDirectPlan<Format>(work, 16, 1).bytes > most) return false;
  int64_t bytes = work.batches * work.rows * work.blocks * Format::bytes;
  if (!Format::has_arrays) return bytes >= 8 * megabyte;
  return bytes > 6 * megabyte || (bytes >= 4 * megabyte && work.columns() >= wide);
}

// Two blocks of eight warps take up to 8 % less than one of 16, where rows are not long and these need no more steps.
template <class T, class Format>
Status packed_row_direct(const Executor& executor, const PackedRows<Format>& work) {
  constexpr int64_t long_rows = 8192;
  PackedDirectPlan<Format> one(work, 16, 1), two(work, 8, 2);
  if (work.columns() <= long_rows && two.steps <= one.steps) return packed_row_direct_by<8, 2, T>(executor, work, two);
  return packed_row_direct_by<16, 1, T>(executor, work, one);
}

}  // namespace internal
}  // namespace baracuda
