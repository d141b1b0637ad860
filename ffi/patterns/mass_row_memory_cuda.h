// The shared memory of a block that has a long row of tokens, or a part of one. What one phase leaves for the next is
// apart; what is of one phase alone shares its bytes with others.
#pragma once

#include "../kernels/mass_bins.h"
#include "key_at_cuda.h"
#include "mass_sum_cuda.h"
#include "row_loads_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int mass_threads = 512, mass_most_cluster = 8;

// Estimates: of masses, of the squares of those that a bin has together, and how many tokens.
struct BinSums {
  double mass;
  float square;
  uint32_t count;

  __device__ BinSums operator+(const BinSums& other) const {
    return {mass + other.mass, square + other.square, count + other.count};
  }
  // Sums up to and with each lane.
  __device__ BinSums scan() const {
    BinSums sum = *this;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      BinSums before{__shfl_up_sync(~0u, sum.mass, distance), __shfl_up_sync(~0u, sum.square, distance),
                     __shfl_up_sync(~0u, sum.count, distance)};
      if (int(threadIdx.x % 32) >= distance) sum = before + sum;
    }
    return sum;
  }
  __device__ BinSums of_lane(int lane) const {
    return {__shfl_sync(~0u, mass, lane), __shfl_sync(~0u, square, lane), __shfl_sync(~0u, count, lane)};
  }
};

// Tokens from `low` to below `high`, all with a mass.
struct TokenRange {
  float low, high;

  __device__ bool has(float x) const { return !(x >= high) & (x >= low); }
};

// The step whose range is the n-th one, or -1.
__device__ inline int step_of(const TokenDraw& draw, int range) {
  if (range == 0) return 2;
  if (range == 1) return draw.has_fraction ? 1 : draw.k ? 0 : -1;
  return draw.has_fraction && draw.k ? 0 : -1;
}

template <class T, class Mass>
struct LongRowMemory {
  using Key = typename SortKey<T>::Key;
  using Element = KeyAt<Key>;
  static constexpr int threads = mass_threads, warps = threads / 32, groups = mass_bins / 32, ranges = 3;
  static constexpr uint32_t few = 4096, most_of_thread = 24, most_of_warp = 256, most_near = 1024, most_large = 512;
  // A token's weight is its mass, and above the bits of the masses of `few` a one.
  static constexpr int count_bit = mass_bits + 13;
  static constexpr uint64_t one = uint64_t(1) << count_bit;
  using Loads = RowLoads<threads, Key>;
  using Words = typename Loads::Words;
  static constexpr int chunks_of_slot = sizeof(Key) == 2 ? 1 : 2, stages = 6 / chunks_of_slot;

  struct Weighted {
    Element element;
    uint64_t weight;
  };

  struct Shared {
    union {
      Words ring[stages * chunks_of_slot][threads];  // while the row is read
      uint32_t merged[mass_bins];                    // the counts of a cluster
      struct {
        Element elements[few];  // of the first block: all that are listed
        uint32_t offsets[warps][most_of_warp];
      };
    };
    union {
      uint32_t counts[mass_bins];
      struct {
        WideSums<threads, threads> near_sums;
        alignas(16) uint32_t positions[most_near + 4];  // of those in `near`
      };
    };
    union {
      struct {
        WideSums<threads, bins_above> large_sums;
        BinSums sums_of_groups[groups];
      };
      uint16_t listed[most_of_thread][threads];  // chunks in which a thread has tokens of the ranges
      Weighted near[most_near];
    };
    float large[most_large];  // elements above the reference
    uint64_t sums[ranges + 1][mass_most_cluster * warps], totals[ranges + 1];
    uint64_t sums_of_warps[warps];
    float cut_of_warps[warps];
    uint32_t end_of_warps[warps], largest_of_warp[warps];
    float largest, scale, smallest;
    TokenDraw draw;
    int32_t first[ranges], last[ranges];  // bins, by the step that looks there
    TokenRange range[ranges];             // the same
    bool has_k;
    uint32_t before_k, found, number_large;
    // Where a prefix ends: the bin, what all bins have, the tokens in the bin, and the last token.
    uint32_t bin, number_near, token;
    uint64_t before_bin, all_bins, sum;
  };
};

}  // namespace internal
}  // namespace baracuda
