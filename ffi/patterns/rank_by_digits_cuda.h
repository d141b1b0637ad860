// The value of a rank among many, by a block, without sorting them: values are counted by their digits, from the
// highest, and those of the digit in which the rank falls are looked at again.
#pragma once

#include <cub/block/block_scan.cuh>

#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int rank_digit_bits = 11, rank_digits = 1 << rank_digit_bits;

// What is known of the value of a rank: its bits from `end` up. The rank is among the `left` values that begin so.
template <class Value>
struct RankPrefix {
  Value found = 0, known = 0;
  int end = 8 * sizeof(Value);
  uint32_t rank, left;

  __device__ RankPrefix(uint32_t rank, uint32_t left) : rank(rank), left(left) {}
  // Where values are below `most`.
  __device__ RankPrefix(uint32_t rank, uint32_t left, uint32_t most) : RankPrefix(rank, left) {
    while (end > 1 && (most - 1) >> (end - 1) == 0) --end, known |= Value(Value(1) << end);
  }

  __device__ bool has(Value value) const { return Value(value & known) == found; }
  __device__ Value last() const { return Value(found | Value(~known)); }
  // Of the next digit.
  __device__ int shift() const { return end > rank_digit_bits ? end - rank_digit_bits : 0; }
  __device__ uint32_t mask() const { return (1u << (end - shift())) - 1; }
  __device__ uint32_t digit(Value value) const { return uint32_t(value >> shift()) & mask(); }
};

// A digit in which a rank falls, the rank among its values, and how many these are.
struct RankDigit {
  uint32_t digit, rank, left;

  template <class Value>
  __device__ void add_to(RankPrefix<Value>& prefix) const {
    int shift = prefix.shift();
    prefix.found |= Value(Value(digit) << shift);
    prefix.known |= Value(Value(prefix.mask()) << shift);
    prefix.end = shift, prefix.rank = rank, prefix.left = left;
  }
};

// `each` calls a body(a few values, a bit for each of them that counts) by all threads together.
template <int threads>
struct RankDigits {
  static constexpr int own = rank_digits / threads;
  using Scan = cub::BlockScan<uint32_t, threads>;
  struct Shared {
    uint32_t counts[rank_digits];
    typename Scan::TempStorage scan;
    RankDigit next;
  };

  // Counts the next digits of the values that begin as the prefix.
  template <class Value, class Each>
  static __device__ void count(Shared& shared, const RankPrefix<Value>& prefix, const Each& each) {
    for (int i = threadIdx.x; i < rank_digits; i += threads) shared.counts[i] = 0;
    __syncthreads();
    each([&]<int n>(const Value(&values)[n], uint32_t counts) {
      uint32_t first = prefix.digit(values[0]);
      bool alike = true;
#pragma unroll
      for (int j = 0; j < n; ++j) {
        if (!prefix.has(values[j])) counts &= ~(1u << j);
        alike &= prefix.digit(values[j]) == first;
      }
      if (!__any_sync(~0u, counts)) return;
      // Many values with one digit would wait for each other.
      int same = 0;
      if (__all_sync(~0u, alike && counts == (1u << n) - 1)) __match_all_sync(~0u, first, &same);
      if (same) {
        if (threadIdx.x % 32 == 0) atomicAdd(&shared.counts[first], 32u * n);
        return;
      }
#pragma unroll
      for (int j = 0; j < n; ++j)
        if (counts >> j & 1) atomicAdd(&shared.counts[prefix.digit(values[j])], 1u);
    });
    __syncthreads();
  }

  // The digits of so many ranks.
  template <class Rank>
  static __device__ void find(Shared& shared, int ranks, const Rank& rank_of, RankDigit* digits) {
    uint32_t mine[own], before[own];
#pragma unroll
    for (int i = 0; i < own; ++i) mine[i] = shared.counts[threadIdx.x * own + i];
    Scan(shared.scan).ExclusiveSum(mine, before);
    for (int j = 0; j < ranks; ++j) {
      uint32_t rank = rank_of(j);
#pragma unroll
      for (int i = 0; i < own; ++i)
        if (rank - before[i] < mine[i]) digits[j] = {threadIdx.x * own + i, rank - before[i], mine[i]};
    }
    __syncthreads();
  }

  // Adds digits to the prefix until few enough values begin so, or all of it is known.
  template <class Value, class Each>
  static __device__ void narrow(Shared& shared, RankPrefix<Value>& prefix, uint32_t enough, const Each& each) {
    while (prefix.end > 0 && prefix.left > enough) {
      count(shared, prefix, each);
      find(shared, 1, [&](int) { return prefix.rank; }, &shared.next);
      shared.next.add_to(prefix);
      __syncthreads();
    }
  }
};

}  // namespace internal
}  // namespace baracuda
