// A long row of tokens, by a block or by the blocks of a cluster, in two reads. The first finds the largest element,
// counts tokens by bins of probability, and keeps the few largest. This gives good estimates of all masses, and so the
// bins in which each wanted prefix ends but for bad luck. The second read adds masses, exactly: all, and those above
// each of these ranges of bins; and lists the tokens in the ranges, which are few. Then the first block searches these.
// What an estimate missed is seen by the exact sums, and left.
#pragma once

#include "../kernels/mass_bins.h"
#include "cluster_cuda.h"
#include "copy_async_cuda.h"
#include "key_at_cuda.h"
#include "lane_sum_cuda.h"
#include "larger_in_word_cuda.h"
#include "mass_search_cuda.h"
#include "row_loads_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int mass_threads = 512, mass_most_cluster = 8;

// A thread's sum of masses that are rounded down. A double has room for the masses of 2^16 tokens: what is rounded to
// zero while it is from 2^52 to 2^53 is rounded to an integer.
struct MassSum {
#if __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
  double sum = 0x1p52;
  // Of a normal number, by two instructions: the one that converts takes more time.
  static __device__ double term(float mass) {
    uint32_t bits = __float_as_uint(mass);
    return __hiloint2double(int32_t((bits >> 3) + 0x38000000u), int32_t(bits << 29));
  }
  __device__ void add(double mass) { sum = __dadd_rz(sum, mass); }
  __device__ uint64_t whole() const {
    return uint64_t(__double_as_longlong(sum)) - uint64_t(__double_as_longlong(0x1p52));
  }
#else
  uint64_t sum = 0;  // doubles are slow
  static __device__ uint64_t term(float mass) { return __float2ull_rz(mass); }
  __device__ void add(uint64_t mass) { sum += mass; }
  __device__ uint64_t whole() const { return sum; }
#endif
  __device__ uint64_t of_warp() const { return sum_of_lanes(whole()); }
};

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

template <class T, class Mass>
struct LongRow {
  using Key = typename SortKey<T>::Key;
  using Element = KeyAt<Key>;
  using Finite = typename Mass::Finite;
  using Bins = MassBins<Mass>;
  using Position = typename Bins::Position;
  static constexpr int threads = mass_threads, warps = threads / 32, groups = mass_bins / 32, ranges = 3;
  static constexpr uint32_t few = 4096, most_of_thread = 24, most_of_warp = 256, most_near = 1024, most_large = 512;
  // A token's weight is its mass, and above the bits of the masses of `few` a one.
  static constexpr int count_bit = mass_bits + 13;
  static constexpr uint64_t one = uint64_t(1) << count_bit;
  using Loads = RowLoads<threads, Key>;
  using Words = typename Loads::Words;
  static constexpr int chunks_of_slot = sizeof(Key) == 2 ? 1 : 2, stages = 6 / chunks_of_slot;

  // Sums of 64 bits in two words: there are no 64-bit atomics.
  template <int number>
  struct WideSums {
    uint32_t low[number], high[number];

    __device__ void clear() {
      for (int i = threadIdx.x; i < number; i += threads) low[i] = high[i] = 0;
    }
    // Each carry is seen by the one who makes it: the sum depends on no order.
    __device__ void add(uint32_t at, uint64_t value) {
      uint32_t before = atomicAdd(&low[at], uint32_t(value)), more = uint32_t((value + before) >> 32);
      if (more) atomicAdd(&high[at], more);
    }
    __device__ uint64_t at(int i) const { return uint64_t(high[i]) << 32 | low[i]; }
  };

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
        WideSums<threads> near_sums;
        alignas(16) uint32_t positions[most_near + 4];  // of those in `near`
      };
    };
    union {
      struct {
        WideSums<bins_above> large_sums;
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

  const SamplingRows<T>& rows;
  Shared& shared;
  int64_t row;
  unsigned rank, blocks;
  Loads loads;
  KeyOrder<Key> order;

  __device__ LongRow(const SamplingRows<T>& rows, Shared& shared, int64_t row)
      : rows(rows),
        shared(shared),
        row(row),
        rank(rank_in_cluster()),
        blocks(blocks_of_cluster()),
        loads(part_of(rows, row, rank, blocks)),
        order(SortKey<T>::order(true)) {}

  static __device__ Loads part_of(const SamplingRows<T>& rows, int64_t row, uint32_t rank, uint32_t blocks) {
    uint32_t count = uint32_t(rows.count), part = (count + blocks - 1) / blocks;
    part = (part + Loads::elements - 1) / Loads::elements * Loads::elements;
    const Key* x = reinterpret_cast<const Key*>(rows.x) + row * rows.count;
    return Loads(x, min(rank * part, count), min((rank + 1) * part, count));
  }

  static __device__ Key nothing() { return bit_cast<Key>(T(-std::numeric_limits<float>::infinity())); }
  static __device__ float element(const Words& words, uint32_t j) {
    return float(bit_cast<T>(Loads::element(words, j)));
  }

  // Finds the largest element, and the token, unless the row is left.
  __device__ bool run(float& largest) const {
    if (threadIdx.x == 0) {
      shared.found = 0, shared.draw = rows.draw(row);
      shared.scale = rows.scale[SamplingRows<T>::serves(row, rows.rows, rows.scale_rows)];
      shared.smallest = rows.smallest[SamplingRows<T>::serves(row, rows.rows, rows.smallest_rows)];
    }
    const TokenDraw& draw = shared.draw;
    float reference = sample(), scale = shared.scale;
    bool any, is_counted;
    for (bool again = false;; again = true) {
      largest = count(Bins(reference, scale));
      any = has_mass<Mass>(largest), is_counted = any && largest < std::numeric_limits<float>::infinity();
      if (is_counted) is_counted = !__syncthreads_or(threadIdx.x == 0 && count_of_bin_0());
      if (again || is_counted || !(largest > reference)) break;
      // The sample was much too low.
      reference = largest;
      sync_cluster(blocks);
    }
    Finite mass(largest, scale, shared.smallest);
    Bins bins(reference, scale);
    if (is_counted) {
      find_ranges(bins, mass, draw);
      if (step_of(draw, 2) < 0)
        read_again<2>(mass, draw);
      else
        read_again<3>(mass, draw);
    }
    sync_cluster(blocks);
    if (rank > 0) return true;
    if (is_counted) return finish(mass, draw);
    if (!any && threadIdx.x == 0) rows.write_none(row);
    return !any;
  }

  // The largest of some tokens.
  __device__ float sample() const {
    const T* at = rows.x + row * rows.count + int64_t(threadIdx.x) * (rows.count - 4) / threads;
    float largest = -std::numeric_limits<float>::infinity();
#pragma unroll
    for (int i = 0; i < 4; ++i) largest = fmaxf(largest, float(at[i]));
    for (int distance = 16; distance > 0; distance /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, distance));
    if (threadIdx.x % 32 == 0) shared.largest_of_warp[threadIdx.x / 32] = __float_as_uint(largest);
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) largest = fmaxf(largest, __uint_as_float(shared.largest_of_warp[warp]));
    return largest;
  }

  // Calls body(words, chunk) for all loads of the block's part, by all threads together; or backward, where the last
  // chunks are in shared memory as the read before left them, and those before in the cache. Each thread has a ring of
  // copies that are on their way, in which some chunks that follow each other have a slot.
  template <bool backward, class Body>
  __device__ void each(bool has_last, const Body& body) const {
    constexpr int32_t step = backward ? -1 : 1, ahead = step * stages, chunks = chunks_of_slot;
    constexpr uint32_t size = threads * sizeof(Words), slot = chunks * size;
    const int32_t number = int32_t(loads.chunks() + chunks - 1) / chunks;
    const int32_t first_whole = loads.before > 0, end_whole = int32_t(loads.length / (chunks * Loads::chunk));
    const uint32_t ring = uint32_t(__cvta_generic_to_shared(&shared.ring[0][threadIdx.x]));
    auto start = [&](int32_t of, uint32_t to) {
      if (of >= 0 && of < number)
#pragma unroll 1
        for (int k = 0; k < chunks; ++k) {
          uint32_t first = loads.offset(uint32_t(chunks * of + k));
          if (first >= loads.before && first + Loads::elements <= loads.length)
            copy_async(to + k * size, loads.from + first, 16);
          else
            store_shared(to + k * size, loads.load_words(first, nothing()));
        }
      __pipeline_commit();
    };
    int32_t next = backward ? number - 1 : 0;
    uint32_t at = uint32_t(next % stages) * slot;
#pragma unroll 1
    for (int32_t i = 0; i < stages; ++i, next += step) {
      if (has_last)
        __pipeline_commit();
      else
        start(next, ring + max(next, 0) % stages * slot);
    }
    const Key* from = loads.from + int64_t(next) * (chunks * Loads::chunk) + threadIdx.x * Loads::elements;
#pragma unroll 1
    for (int32_t turn = number; turn > 0; --turn) {
      __pipeline_wait_prior(stages - 1);
      Words words[chunks];
#pragma unroll
      for (int k = 0; k < chunks; ++k) words[k] = load_shared(ring + at + k * size);
      // One branch for all threads where the chunks are whole, as all are but the first and the last.
      if (backward ? next >= first_whole : next < end_whole) {
#pragma unroll
        for (int k = 0; k < chunks; ++k) copy_async(ring + at + k * size, from + k * Loads::chunk, 16);
        __pipeline_commit();
      } else {
        start(next, ring + at);
      }
#pragma unroll
      for (int k = 0; k < chunks; ++k) body(words[k], chunks * (next - ahead) + k);
      next += step, from += step * int32_t(chunks * Loads::chunk);
      if constexpr (backward)
        at = at == 0 ? (stages - 1) * slot : at - slot;
      else
        at = at == (stages - 1) * slot ? 0 : at + slot;
    }
    __syncthreads();
  }
  static __device__ Words load_shared(uint32_t at) {
    Words words;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.lane[0]), "=r"(words.lane[1]), "=r"(words.lane[2]), "=r"(words.lane[3])
                 : "r"(at)
                 : "memory");
    return words;
  }
  static __device__ void store_shared(uint32_t at, const Words& words) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(words.lane[0]), "r"(words.lane[1]),
                 "r"(words.lane[2]), "r"(words.lane[3])
                 : "memory");
  }

  // Counts the block's tokens by bins, and returns the largest element of the row.
  __device__ float count(const Bins& bins) const {
    for (int i = threadIdx.x; i < mass_bins; i += threads) shared.counts[i] = 0;
    if (threadIdx.x == 0) shared.number_large = 0;
    __syncthreads();
    constexpr uint32_t words = 4;
    const uint32_t smallest = sizeof(Key) == 4 ? uint32_t(nothing()) : uint32_t(nothing()) << 16 | nothing();
    uint32_t found[words] = {smallest, smallest, smallest, smallest};
    // Where the count would be of a position whose bits are zero: each has its address by one instruction.
    uint32_t counts = uint32_t(__cvta_generic_to_shared(shared.counts)) + 4 * uint32_t(Bins::bin(Position(0)));
    asm("" : "+r"(counts));
    const Position begin = Bins::at(0), middle = Bins::at(bins_above), end = Bins::at(mass_bins - 1);
    each<false>(false, [&](const Words& of, int32_t) {
#pragma unroll
      for (uint32_t j = 0; j < words; ++j) found[j] = larger_in_word<T>(found[j], of.lane[j]);
      bool any = false;
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j) {
        // What has no mass is in the last one, NaN too.
        Position position = max(min(bins.position(element(of, j)), end), begin);
        asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(counts + 4 * bit_cast<uint32_t>(position)) : "memory");
        any |= position < middle;
      }
      if (any)
#pragma unroll
        for (uint32_t j = 0; j < Loads::elements; ++j) {
          float x = element(of, j);
          if (!(bins.position(x) < middle)) continue;
          uint32_t at = atomicAdd(&shared.number_large, 1u);
          if (at < most_large) shared.large[at] = x;
        }
    });
    uint32_t largest = larger_in_word<T>(larger_in_word<T>(found[0], found[1]), larger_in_word<T>(found[2], found[3]));
    for (int distance = 16; distance > 0; distance /= 2)
      largest = larger_in_word<T>(largest, __shfl_xor_sync(~0u, largest, distance));
    if (threadIdx.x % 32 == 0) shared.largest_of_warp[threadIdx.x / 32] = largest;
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll
      for (int warp = 0; warp < warps; ++warp) largest = larger_in_word<T>(largest, shared.largest_of_warp[warp]);
      if constexpr (sizeof(Key) == 2) largest = larger_in_word<T>(largest, largest >> 16 | largest << 16);
      shared.largest = float(bit_cast<T>(Key(largest)));
    }
    sync_cluster(blocks);
    uint32_t all = __float_as_uint(*of_block(&shared.largest, 0));
    for (unsigned block = 1; block < blocks; ++block)
      all = larger_in_word<float>(all, __float_as_uint(*of_block(&shared.largest, block)));
    return __uint_as_float(all);
  }
  __device__ uint32_t count_of_bin_0() const {
    uint32_t count = 0;
    for (unsigned block = 0; block < blocks; ++block) count += *of_block(&shared.counts[0], block);
    return count;
  }

  // Adds the counts of a cluster's blocks, each its part of the bins for all.
  __device__ const uint32_t* merge_counts() const {
    if (blocks == 1) return shared.counts;
    int part = mass_bins / int(blocks), begin = int(rank) * part;
#pragma unroll 1
    for (int i = 4 * threadIdx.x; i < part; i += 4 * threads) {
      uint4 sum{};
      for (unsigned block = 0; block < blocks; ++block) {
        uint4 some = *reinterpret_cast<const uint4*>(of_block(&shared.counts[begin + i], block));
        sum.x += some.x, sum.y += some.y, sum.z += some.z, sum.w += some.w;
      }
      for (unsigned block = 0; block < blocks; ++block)
        *reinterpret_cast<uint4*>(of_block(&shared.merged[begin + i], block)) = sum;
    }
    sync_cluster(blocks);
    return shared.merged;
  }
  // Adds the masses of the elements above the reference. False if they are too many.
  __device__ bool add_large(const Bins& bins, const Finite& mass) const {
    auto& sums = shared.large_sums;
    sums.clear();
    __syncthreads();
    bool fits = true;
    for (unsigned block = 0; block < blocks; ++block) {
      uint32_t number = *of_block(&shared.number_large, block);
      fits &= number <= most_large;
      const float* large = of_block(shared.large, block);
#pragma unroll 1
      for (uint32_t i = threadIdx.x; i < min(number, most_large); i += threads) {
        float x = large[i];
        int32_t bin = Bins::bin(bins.position(x));
        if (bin >= 0) sums.add(uint32_t(bin), mass.mass(x));
      }
    }
    __syncthreads();
    return fits;
  }

  // The estimates of a bin.
  __device__ BinSums sums_of(const Bins& bins, const Finite& mass, int32_t bin, uint32_t count, bool knows_large,
                             float& cut) const {
    bool is_cut, is_known = knows_large && bin < bins_above;
    float of = float(count) * float(bins.middle(mass, bin, is_cut));
    if (is_known) of = float(shared.large_sums.at(min(bin, bins_above - 1)));
    cut = is_cut & !is_known ? of : 0;  // some of the tokens may have no mass
    return {of, is_known ? 0 : of * of, count};
  }

  // Finds the range of tokens for each step of the search.
  __device__ void find_ranges(const Bins& bins, const Finite& mass, const TokenDraw& draw) const {
    const uint32_t* counts = merge_counts();
    bool knows_large = add_large(bins, mass);
    const int32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float cut = 0;
    uint32_t end = 0;
    // A bin for each lane. Their instructions are read from memory: a loop waits less.
#pragma unroll 1
    for (int32_t group = warp; group < groups; group += warps) {
      int32_t bin = 32 * group + lane;
      uint32_t count = bin < mass_bins - 1 ? counts[bin] : 0;
      BinSums sum{};
      if (__any_sync(~0u, count)) {
        float cut_of_bin;
        sum = sums_of(bins, mass, bin, count, knows_large, cut_of_bin);
        if (sum.mass > 0) end = bin;
        sum = sum.scan(), cut += cut_of_bin;
      }
      if (lane == 31) shared.sums_of_groups[group] = sum;
    }
    cut = sum_of_lanes(cut), end = __reduce_max_sync(~0u, end);
    if (lane == 0) shared.cut_of_warps[warp] = cut, shared.end_of_warps[warp] = end;
    if (threadIdx.x < ranges) shared.first[threadIdx.x] = shared.last[threadIdx.x] = mass_bins - 2;
    __syncthreads();
    if (warp == 0) find_bins(bins, mass, draw, counts, knows_large);
    __syncthreads();
    if (warp < 2 * ranges) {
      int step = warp / 2;
      bool low = warp % 2;
      auto first = Bins::at(shared.first[step]), last = Bins::at(shared.last[step]);
      float bound = smallest(mass.largest, [&](float x) {
        float unrounded;
        auto position = bins.position(x);
        return (low ? position <= last : position < first) & mass.unrounded(x, unrounded);
      });
      if (lane == 0) (low ? shared.range[step].low : shared.range[step].high) = bound;
    }
    __syncthreads();
  }
  // The smallest number for which something holds that holds from there to the largest one, by a warp; if it never
  // does, what is next to the largest.
  template <class Holds>
  static __device__ float smallest(float largest, const Holds& holds) {
    uint32_t begin = SortKey<float>::of(-std::numeric_limits<float>::infinity(), false);
    uint32_t end = SortKey<float>::of(largest, false) + 1;
#pragma unroll 1
    while (begin < end) {
      uint32_t step = (end - begin) / 32 + 1, key = begin + threadIdx.x % 32 * step;
      uint32_t lanes = __ballot_sync(~0u, key >= end || holds(SortKey<float>::number(key, false)));
      uint32_t lane = lanes ? __ffs(int(lanes)) - 1 : 32;
      if (lane < 32) end = min(end, begin + lane * step);
      if (lane > 0) begin += (lane - 1) * step + 1;
    }
    return SortKey<float>::number(begin, false);
  }

  // Finds the range of bins for each step, by a warp.
  __device__ void find_bins(const Bins& bins, const Finite& mass, const TokenDraw& draw, const uint32_t* counts,
                            bool knows_large) const {
    const int32_t lane = threadIdx.x;
    const float cut = sum_of_lanes(lane < warps ? shared.cut_of_warps[lane] : 0);
    const int32_t end = int32_t(__reduce_max_sync(~0u, shared.end_of_warps[lane % warps]));
    // Each group's sums become those up to and with it.
    constexpr int own = groups / 32;
    BinSums* sums_of_own = &shared.sums_of_groups[own * lane];
    BinSums sum{};
#pragma unroll
    for (int i = 0; i < own; ++i) sums_of_own[i] = sum = sum + sums_of_own[i];
    const BinSums up_to_own = sum.scan(), total = up_to_own.of_lane(31);
    BinSums before_own = up_to_own.of_lane(max(lane - 1, 0));
    if (lane == 0) before_own = BinSums{};
#pragma unroll
    for (int i = 0; i < own; ++i) sums_of_own[i] = before_own + sums_of_own[i];
    __syncwarp();
    // The first bins up to which the sums have what holds(sums, side) says, for both sides at once, and the sums; or
    // the last bin with a mass.
    struct Bin {
      int32_t at;
      BinSums before, up_to;
    };
    auto first_bins = [&](Bin(&found)[2], const auto& holds) {
      uint32_t lanes[2];
      int32_t group[2];
      const BinSums of_lane = shared.sums_of_groups[own * lane + own - 1];
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        lanes[side] = __ballot_sync(~0u, holds(of_lane, side));
        group[side] = lanes[side] ? own * (__ffs(int(lanes[side])) - 1) : 0;
      }
      uint32_t some[2];
#pragma unroll
      for (int side = 0; side < 2; ++side)
        some[side] = __ballot_sync(~0u, lane < own && holds(shared.sums_of_groups[group[side] + lane % own], side));
      BinSums sums[2];
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        if (some[side]) group[side] += __ffs(int(some[side])) - 1;
        float unused;
        int32_t bin = 32 * group[side] + lane;
        sums[side] = sums_of(bins, mass, bin, bin < mass_bins - 1 ? counts[bin] : 0, knows_large, unused);
      }
#pragma unroll
      for (int side = 0; side < 2; ++side) sums[side] = sums[side].scan();
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        found[side] = {mass_bins - 2, total, total};
        if (!lanes[side]) continue;
        BinSums before = group[side] ? shared.sums_of_groups[group[side] - 1] : BinSums{};
        sums[side] = before + sums[side];
        uint32_t bins_of_group = __ballot_sync(~0u, holds(sums[side], side));
        int32_t at = bins_of_group ? __ffs(int(bins_of_group)) - 1 : 31;
        if (at) before = sums[side].of_lane(at - 1);
        found[side] = {32 * group[side] + at, before, sums[side].of_lane(at)};
      }
    };
    const auto k = uint64_t(draw.k);
    const double p = draw.fraction * 0x1p-32, slack = 0x1p-40 * total.mass + cut;
    // What is kept has a mass from `low` to `high`, estimated as the part `of` of what has the square `square`.
    double low = total.mass, high = total.mass, k_low = low, k_high = high;
    float of = 1, square = total.square, k_square = square;
    bool has_k = false;
    // One search in the code: its instructions are read from memory.
#pragma unroll 1
    for (int step = k ? 0 : draw.has_fraction ? 1 : 2; step < ranges; step += step == 0 && !draw.has_fraction ? 2 : 1) {
      if (step == 1) {
        if (draw.joint) low = high = total.mass, square = total.square;
        low *= p, high *= p, of = float(p);
      } else if (step == 2) {
        double random = double(draw.random >> 32) * 0x1p-32;
        low *= random, high *= random, of *= float(random);
      }
      Bin found[2];
      first_bins(found, [&](const BinSums& sums, int side) {
        if (step == 0) return sums.count >= k;
        // The square of how wrong the difference of a prefix and the target may be.
        constexpr float five = 25 * Bins::deviation * Bins::deviation;
        float error = five * ((1 - of) * (1 - of) * sums.square + of * of * fmaxf(square - sums.square, 0));
        float beyond = float(side ? sums.mass - slack - high : sums.mass + slack - low);
        return side ? beyond >= 0 && beyond * beyond >= error : beyond >= 0 || beyond * beyond <= error;
      });
      if (step == 0) {
        has_k = found[0].at <= end;
        if (!has_k) continue;
        k_low = low = found[0].before.mass, k_high = high = found[0].up_to.mass;
        k_square = square = found[0].up_to.square;
        shared.first[0] = shared.last[0] = found[0].at, shared.before_k = found[0].before.count;
        continue;
      }
      shared.first[step] = found[0].at, shared.last[step] = min(found[1].at, end);
      if (step == 2) break;
      // The prefix has one token more, at most.
      bool is_cut;
      high = fmin(high + 1.02 * double(bins.middle(mass, found[0].at, is_cut)), fmax(high, found[1].up_to.mass));
      if (draw.joint) {
        high = fmin(k_high, high);
        if (k_low < low) low = k_low, square = k_square, of = 1;
      }
    }
    shared.has_k = has_k;
  }

  // The step whose range is the n-th one, or -1.
  static __device__ int step_of(const TokenDraw& draw, int range) {
    if (range == 0) return 2;
    if (range == 1) return draw.has_fraction ? 1 : draw.k ? 0 : -1;
    return draw.has_fraction && draw.k ? 0 : -1;
  }

  // Adds masses, and lists tokens.
  template <int some>
  __device__ void read_again(const Finite& mass, const TokenDraw& draw) const {
    constexpr float none = std::numeric_limits<float>::infinity();
    MassSum all, above[some];
    TokenRange range[some];
    // How far tokens of a range may be from the largest: that is by bits, of which one instruction finds the smallest
    // beyond a number.
    uint32_t from[some], width[some];
    auto distance = [&](float x) { return __float_as_uint(rounded_sum(mass.largest, -x)); };
#pragma unroll
    for (int i = 0; i < some; ++i) {
      int step = step_of(draw, i);
      range[i] = step < 0 ? TokenRange{none, none} : shared.range[step];
      from[i] = range[i].high < mass.largest ? distance(range[i].high) : 0;
      uint32_t to = range[i].low < mass.largest ? distance(range[i].low) : 0;
      width[i] = max(from[i], to) - from[i];
      if (step < 0) from[i] = ~0u;
    }
    uint32_t listed = 0;
    uint16_t* list = &shared.listed[0][threadIdx.x];
    each<true>(blocks == 1, [&](const Words& words, int32_t chunk) {
      uint32_t nearest[some];
#pragma unroll
      for (int i = 0; i < some; ++i) nearest[i] = ~0u;
#pragma unroll
      for (int j = 0; j < int(Loads::elements); ++j) {
        float x = element(words, j), unrounded;
        bool has_mass = mass.unrounded(x, unrounded);
        auto of = MassSum::term(unrounded);
        if (has_mass) all.add(of);
#pragma unroll
        for (int i = 0; i < some; ++i) {
          if (x >= range[i].high) above[i].add(of);
          nearest[i] = __viaddmin_u32(distance(x), 0u - from[i], nearest[i]);
        }
      }
      bool hit = false;
#pragma unroll
      for (int i = 0; i < some; ++i) hit |= nearest[i] <= width[i];
      if (hit) {
        if (listed < most_of_thread) list[listed * threads] = uint16_t(chunk);
        ++listed;
      }
    });
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bool fits = listed <= most_of_thread;
    const uint32_t end = gather(list, listed, fits);
    Words words{};
    if (lane < end) words = loads.load_words(shared.offsets[warp][lane], nothing());
    uint64_t sums[some + 1];
#pragma unroll
    for (int i = 0; i <= some; ++i) sums[i] = i ? above[i - 1].of_warp() : all.of_warp();
    if (blocks > 1) sync_cluster(blocks);  // the first block has read its part, and has room
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i <= some; ++i) *of_block(&shared.sums[i][rank * warps + warp], 0) = sums[i];
      if (!fits) atomicAdd(of_block(&shared.found, 0), few + 1);
    }
    send(words, end, range);
  }
  // Lists the offsets of a warp's loads one after the other, so that each lane has one. Returns how many they are.
  __device__ uint32_t gather(const uint16_t* list, uint32_t listed, bool& fits) const {
    uint32_t* offsets = shared.offsets[threadIdx.x / 32];
    listed = min(listed, most_of_thread);
    uint32_t up_to = sum_up_to(listed), end = __shfl_sync(~0u, up_to, 31);
    fits = __all_sync(~0u, fits) && end <= most_of_warp;
    if (!fits) return 0;
#pragma unroll 1
    for (uint32_t i = 0; i < listed; ++i) offsets[up_to - listed + i] = loads.offset(list[i * threads]);
    __syncwarp();
    return end;
  }
  // Gives the first block the tokens of a warp's loads, of which the lanes have the first ones.
  template <int some>
  __device__ void send(Words next, uint32_t end, const TokenRange (&range)[some]) const {
    constexpr int n = int(Loads::elements);
    uint32_t* found = of_block(&shared.found, 0);
    Element* elements = of_block(shared.elements, 0);
    const uint32_t lane = threadIdx.x % 32, *offsets = shared.offsets[threadIdx.x / 32];
#pragma unroll 1
    for (uint32_t i = lane; i - lane < end; i += 32) {
      Words words = next;
      uint32_t offset = i < end ? offsets[i] : 0, hits = 0;
      if (i + 32 < end) next = loads.load_words(offsets[i + 32], nothing());
#pragma unroll
      for (int j = 0; j < n; ++j)
#pragma unroll
        for (int r = 0; r < some; ++r)
          if (range[r].has(element(words, j))) hits |= 1u << j;
      if (i >= end) hits = 0;
      uint32_t number = __popc(hits), up_to = sum_up_to(number), at = 0;
      if (lane == 31) at = atomicAdd(found, up_to);
      at = __shfl_sync(~0u, at, 31) + up_to - number;
#pragma unroll
      for (int j = 0; j < n; ++j)
        if (hits >> j & 1) {
          if (at < few)
            elements[at] = Element(order.of(Loads::element(words, j)), loads.position(offset) + uint32_t(j));
          ++at;
        }
    }
  }
  // Sums up to and with each lane.
  template <class Value>
  static __device__ Value sum_up_to(Value value) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      Value before = __shfl_up_sync(~0u, value, distance);
      if (int(threadIdx.x % 32) >= distance) value += before;
    }
    return value;
  }

  __device__ bool finish(const Finite& mass, const TokenDraw& draw) const {
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp <= (step_of(draw, 2) < 0 ? 2u : 3u)) {
      uint64_t sum = 0;
      for (uint32_t i = lane; i < blocks * warps; i += 32) sum += shared.sums[warp][i];
      sum = sum_of_lanes(sum);
      if (lane == 0) shared.totals[warp] = sum;
    }
    __syncthreads();
    if (shared.found > few) return false;
    Listed listed{*this, mass, draw, true};
    DrawnTokens drawn;
    auto last = drawn.find(draw, shared.totals[0], listed);
    if (!listed.fits) return false;
    if (threadIdx.x == 0) rows.write(row, mass, int32_t(last.token), drawn.kept);
    return true;
  }

  // The listed tokens. Sums of weights by bins in a range tell the bin in which a prefix ends. Its tokens are few, and
  // each is compared with all.
  struct Listed {
    struct Last {
      uint32_t token;
      uint64_t sum;
    };

    const LongRow& of;
    const Finite& mass;
    const TokenDraw& draw;
    bool fits;

    static __device__ uint64_t mass_of(uint64_t weight) { return weight & (one - 1); }
    static __device__ float value(const Element& element) { return float(SortKey<T>::number(element.key(), true)); }
    // Calls body(element, number, weight) for those in a range that have a mass.
    template <class Body>
    __device__ void each_of(const TokenRange& range, const Body& body) const {
#pragma unroll 1
      for (uint32_t i = threadIdx.x; i < of.shared.found; i += threads) {
        Element element = of.shared.elements[i];
        float x = value(element);
        uint64_t of_token = range.has(x) ? mass.mass(x) : 0;
        if (of_token) body(element, x, of_token | one);
      }
    }

    __device__ bool differs(uint32_t key, uint32_t number) const {
      bool any = false;
      for (uint32_t i = threadIdx.x; i < number; i += threads) any |= of.shared.near[i].element.key() != key;
      return any;
    }
    __device__ Last last_of(int step, uint64_t target) {
      Shared& shared = of.shared;
      bool by_count = step == 0;
      if (by_count && !shared.has_k) return {0, shared.totals[0]};
      uint64_t before = shared.totals[step == 2 ? 1 : step == 1 || !draw.has_fraction ? 2 : 3];
      fits &= by_count || target > before;
      if (!fits) return {};
      target -= by_count ? shared.before_k : before;
      auto reaches = [&](uint64_t sum) { return (by_count ? sum >> count_bit : mass_of(sum)) >= target; };
      shared.near_sums.clear();
      if (threadIdx.x == 0) shared.bin = threads, shared.number_near = 0;
      __syncthreads();
      TokenRange range = shared.range[step];
      float high = fminf(range.high, mass.largest), scale = threads / (high - range.low);
      auto bin_of = [&](float x) { return min(uint32_t((high - x) * scale), uint32_t(threads) - 1); };
      each_of(range, [&](const Element&, float x, uint64_t weight) { shared.near_sums.add(bin_of(x), weight); });
      __syncthreads();
      uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      uint64_t of_bin = shared.near_sums.at(threadIdx.x), up_to = sum_up_to(of_bin);
      if (lane == 31) shared.sums_of_warps[warp] = up_to;
      __syncthreads();
      up_to += sum_of_lanes(lane < warp ? shared.sums_of_warps[lane] : 0);
      if (!reaches(up_to - of_bin) && reaches(up_to)) shared.bin = threadIdx.x, shared.before_bin = up_to - of_bin;
      if (threadIdx.x == threads - 1) shared.all_bins = up_to;
      __syncthreads();
      if (shared.bin == threads) {  // the k-th token has no mass, or the range is a wrong one
        fits &= by_count;
        return {0, before + mass_of(shared.all_bins)};
      }
      each_of(range, [&](const Element& element, float x, uint64_t weight) {
        if (bin_of(x) != shared.bin) return;
        uint32_t at = atomicAdd(&shared.number_near, 1u);
        if (at < most_near) shared.near[at] = {element, weight}, shared.positions[at] = element.at();
      });
      __syncthreads();
      uint32_t number = shared.number_near;
      fits &= number <= most_near;
      if (!fits) return {};
      uint64_t before_tokens = shared.before_bin;
      // Many are equal ones: then positions alone are compared.
      uint32_t key = shared.near[0].element.key();
      bool equal = number > 64;
      if (equal) {
        if (threadIdx.x < 4) shared.positions[number + threadIdx.x] = ~0u;
        equal = !__syncthreads_or(differs(key, number));
      }
#pragma unroll 1
      for (uint32_t i = threadIdx.x; i < number; i += threads) {
        Weighted own = shared.near[i];
        uint64_t sum = before_tokens;
        if (equal) {
          uint32_t less = 0;
#pragma unroll 2
          for (uint32_t j = 0; j < number; j += 4) {
            uint4 some = *reinterpret_cast<const uint4*>(&shared.positions[j]);
            uint32_t at = own.element.at();
            less += (some.x < at) + (some.y < at) + (some.z < at) + (some.w < at);
          }
          sum += less * own.weight;
        } else {
#pragma unroll 2
          for (uint32_t j = 0; j < number; ++j) {
            Weighted other = shared.near[j];
            if (other.element < own.element) sum += other.weight;
          }
        }
        if (!reaches(sum) && reaches(sum + own.weight))
          shared.token = own.element.at(), shared.sum = before + mass_of(sum + own.weight);
      }
      __syncthreads();
      return {shared.token, shared.sum};
    }
  };
};

}  // namespace internal
}  // namespace baracuda
