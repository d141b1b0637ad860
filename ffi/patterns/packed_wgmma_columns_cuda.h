// The rows of x of products by warpgroups, which are columns of those: on their way from memory to shared memory, in
// which they are an operand, with the sums that shifts are multiplied by. For sm_90a.
#pragma once

#include "packed_rows_mma_cuda.h"

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

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace internal
}  // namespace baracuda
