// A long row of tokens, by a block or by the blocks of a cluster, in two reads. The first finds the largest element,
// counts tokens by bins of probability, and keeps the few largest. This gives good estimates of all masses, and so the
// bins in which each wanted prefix ends but for bad luck. The second read adds masses, exactly: all, and those above
// each of these ranges of bins; and lists the tokens in the ranges, which are few. Then the first block searches these.
// What an estimate missed is seen by the exact sums, and left.
#pragma once

#include <cub/block/block_scan.cuh>

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
  static __device__ double term(float mass) { return double(mass); }
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
  double mass = 0;
  float square = 0, cut = 0;  // of those of bins some of whose tokens may have no mass
  uint32_t count = 0;

  __device__ BinSums operator+(const BinSums& other) const {
    return {mass + other.mass, square + other.square, cut + other.cut, count + other.count};
  }
};

template <class T, class Mass>
struct LongRow {
  using Key = typename SortKey<T>::Key;
  using Element = KeyAt<Key>;
  using Finite = typename Mass::Finite;
  using Bins = MassBins<Mass>;
  using Position = typename Bins::Position;
  static constexpr int threads = mass_threads, warps = threads / 32, own = mass_bins / threads, ranges = 3;
  static constexpr uint32_t few = 4096, most_of_warp = 256, most_held = 4 * threads, most_large = 512;
  static constexpr uint32_t fine_bins = 2 * threads;
  static constexpr int stages = 6;
  using Loads = RowLoads<threads, Key>;
  using Words = typename Loads::Words;
  using Held = HeldTokens<T, Finite, threads, 4>;
  using Scan = cub::BlockScan<BinSums, threads, cub::BLOCK_SCAN_WARP_SCANS>;
  using FineScan = cub::BlockScan<uint64_t, threads, cub::BLOCK_SCAN_WARP_SCANS>;

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

  struct Shared {
    union {
      Words ring[stages][threads];  // while the row is read
      uint32_t merged[mass_bins];   // the counts of a cluster
      Element elements[few];        // of the first block: all that are listed
    };
    union {
      uint32_t counts[mass_bins];
      struct {
        WideSums<fine_bins> fine_sums;
        uint16_t held[most_held];
      };
    };
    union {
      WideSums<bins_above> large_sums;
      uint32_t listed[warps][most_of_warp];  // loads with tokens in the ranges
    };
    float large[most_large];  // elements above the reference
    uint64_t sums[ranges + 1][mass_most_cluster * warps], totals[ranges + 1];
    union {
      typename Scan::TempStorage scan;
      typename FineScan::TempStorage fine_scan;
    };
    uint64_t fine_before, fine_up_to;
    uint32_t fine;
    typename Held::Team::Shared team;
    uint32_t largest_of_warp[warps];
    float largest;
    int32_t first[ranges], last[ranges], end;  // bins, by the step that looks there; the last one with a mass
    BinSums before_k, up_to_k;
    double kept;
    bool has_k;
    uint32_t found, of_range, number_large;
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
    if (threadIdx.x < ranges) shared.first[threadIdx.x] = shared.last[threadIdx.x] = mass_bins - 2;
    if (threadIdx.x == 0) shared.found = 0, shared.end = 0, shared.has_k = false;
    float scale = rows.scale[SamplingRows<T>::serves(row, rows.rows, rows.scale_rows)], reference = sample();
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
    Finite mass = rows.template mass<Finite>(row, largest);
    Bins bins(reference, scale);
    TokenDraw draw = rows.draw(row);
    if (is_counted) {
      find_ranges(bins, mass, draw);
      if (step_of(draw, 2) < 0)
        read_again<2>(bins, mass, draw);
      else
        read_again<3>(bins, mass, draw);
    }
    sync_cluster(blocks);
    if (rank > 0) return true;
    if (is_counted) return finish(bins, mass, draw);
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

  // Calls body(words, offset) for all loads of the block's part, by all threads together; or backward, where the last
  // chunks are in shared memory as the read before left them, and those before in the cache. Each thread has a ring of
  // copies that are on their way, in which each chunk has its slot.
  template <bool backward, class Body>
  __device__ void each(bool has_last, const Body& body) const {
    int32_t number = int32_t(loads.chunks());
    auto start = [&](int32_t chunk, int32_t slot) {
      if (chunk >= 0 && chunk < number) {
        Words* to = &shared.ring[slot][threadIdx.x];
        uint32_t first = loads.offset(uint32_t(chunk));
        if (first >= loads.before && first + Loads::elements <= loads.length)
          copy_async(to, loads.from + first, 16);
        else
          *to = loads.load_words(first, nothing());
      }
      __pipeline_commit();
    };
    int32_t chunk = backward ? number - 1 : 0, slot = chunk % stages;
    if (!has_last)
      for (int32_t i = 0; i < stages; ++i) {
        int32_t of = backward ? number - 1 - i : i;
        start(of, max(of, 0) % stages);
      }
    else
      for (int32_t i = 0; i < stages; ++i) __pipeline_commit();
    for (int32_t turn = 0; turn < number; ++turn) {
      __pipeline_wait_prior(stages - 1);
      Words words = shared.ring[slot][threadIdx.x];
      start(backward ? chunk - stages : chunk + stages, slot);
      body(words, loads.offset(uint32_t(chunk)));
      if constexpr (backward)
        --chunk, slot = slot ? slot - 1 : stages - 1;
      else
        ++chunk, slot = slot < stages - 1 ? slot + 1 : 0;
    }
    __syncthreads();
  }

  // Counts the block's tokens by bins, and returns the largest element of the row.
  __device__ float count(const Bins& bins) const {
    for (int i = threadIdx.x; i < mass_bins; i += threads) shared.counts[i] = 0;
    if (threadIdx.x == 0) shared.number_large = 0;
    __syncthreads();
    constexpr uint32_t words = 4;
    const uint32_t smallest = sizeof(Key) == 4 ? uint32_t(nothing()) : uint32_t(nothing()) << 16 | nothing();
    uint32_t found[words] = {smallest, smallest, smallest, smallest};
    const Position begin = Bins::at(0), middle = Bins::at(bins_above), end = Bins::at(mass_bins - 1);
    each<false>(false, [&](const Words& of, uint32_t) {
#pragma unroll
      for (uint32_t j = 0; j < words; ++j) found[j] = larger_in_word<T>(found[j], of.lane[j]);
      bool any = false;
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j) {
        // What has no mass is in the last one, NaN too.
        Position position = max(min(bins.position(element(of, j)), end), begin);
        atomicAdd(&shared.counts[Bins::bin(position)], 1u);
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
      for (uint32_t i = threadIdx.x; i < min(number, most_large); i += threads) {
        float x = large[i];
        int32_t bin = Bins::bin(bins.position(x));
        if (bin >= 0) sums.add(uint32_t(bin), mass.mass(x));
      }
    }
    __syncthreads();
    return fits;
  }

  // Finds the range of bins for each step of the search.
  __device__ void find_ranges(const Bins& bins, const Finite& mass, const TokenDraw& draw) const {
    const uint32_t* all_counts = merge_counts();
    bool knows_large = add_large(bins, mass);
    int32_t begin = int32_t(threadIdx.x) * own;
    BinSums sums[own], before, total;
    bool any = false;
#pragma unroll
    for (int i = 0; i < own; ++i) sums[i].count = begin + i < mass_bins - 1 ? all_counts[begin + i] : 0;
#pragma unroll
    for (int i = 0; i < own; ++i) any |= sums[i].count > 0;
    any = __any_sync(~0u, any);
    if (any) {
      int32_t end = 0;
#pragma unroll
      for (int i = 0; i < own; ++i) {
        bool is_cut, is_known = knows_large && begin + i < bins_above;
        float of = float(sums[i].count) * float(bins.middle(mass, begin + i, is_cut));
        if (is_known) of = float(shared.large_sums.at(min(begin + i, bins_above - 1)));
        sums[i].mass = of, sums[i].square = is_known ? 0 : of * of, sums[i].cut = is_cut & !is_known ? of : 0;
        if (of > 0) end = begin + i;
        before = sums[i] = before + sums[i];
      }
      if (end) atomicMax(&shared.end, end);
    }
    auto add = [](const BinSums& a, const BinSums& b) { return a + b; };
    Scan(shared.scan).ExclusiveScan(before, before, BinSums(), add, total);
    if (threadIdx.x == 0) shared.up_to_k = shared.before_k = total;
    __syncthreads();
    if (any) {
#pragma unroll
      for (int i = 0; i < own; ++i) sums[i] = before + sums[i];
      if (draw.k && draw.k > before.count && draw.k <= sums[own - 1].count)
#pragma unroll
        for (int i = own - 1; i >= 0; --i)
          if (draw.k <= sums[i].count && draw.k > (i ? sums[i - 1].count : before.count) && begin + i <= shared.end) {
            shared.first[0] = shared.last[0] = begin + i, shared.up_to_k = sums[i];
            shared.before_k = i ? sums[i - 1] : before, shared.has_k = true;
          }
    }
    __syncthreads();
    // What is kept has a mass from `low` to `high`, estimated as the part `of` of what has the square `square`.
    double low = shared.before_k.mass, high = shared.up_to_k.mass, slack = 0x1p-40 * total.mass + total.cut;
    float of = 1, square = shared.up_to_k.square;
    auto locate = [&](int step) {
      int32_t first = mass_bins, last = mass_bins;
      if (any) {
        constexpr float five = 25 * Bins::deviation * Bins::deviation;
#pragma unroll
        for (int i = own - 1; i >= 0; --i) {
          // The square of how wrong the difference of a prefix and the target may be.
          float error = five * ((1 - of) * (1 - of) * sums[i].square + of * of * fmaxf(square - sums[i].square, 0));
          float below = float(low - slack - sums[i].mass), above = float(sums[i].mass - slack - high);
          if (below <= 0 || below * below <= error) first = begin + i;
          if (above >= 0 && above * above >= error) last = begin + i;
        }
      }
      if (first < mass_bins) atomicMin(&shared.first[step], first);
      if (last < mass_bins) atomicMin(&shared.last[step], last);
      __syncthreads();
      last = min(shared.last[step], shared.end);
      if (any && last >= begin && last < begin + own)
#pragma unroll
        for (int i = 0; i < own; ++i)
          if (begin + i == last) shared.last[step] = last, shared.kept = sums[i].mass;
      __syncthreads();
    };
    if (draw.has_fraction) {
      double p = draw.fraction * 0x1p-32, k_low = low, k_high = high;
      float k_square = square;
      if (draw.joint) low = high = total.mass, square = total.square;
      low *= p, high *= p, of = float(p);
      locate(1);
      // The prefix has one token more, at most.
      bool is_cut;
      high = fmin(high + 1.02 * double(bins.middle(mass, shared.first[1], is_cut)), fmax(high, shared.kept));
      if (draw.joint) {
        high = fmin(k_high, high);
        if (k_low < low) low = k_low, square = k_square, of = 1;
      }
    }
    double random = double(draw.random >> 32) * 0x1p-32;
    low *= random, high *= random, of *= float(random);
    locate(2);
  }

  // The step whose range is the n-th one, or -1.
  static __device__ int step_of(const TokenDraw& draw, int range) {
    if (range == 0) return 2;
    if (range == 1) return draw.has_fraction ? 1 : draw.k ? 0 : -1;
    return draw.has_fraction && draw.k ? 0 : -1;
  }

  // Adds masses, and lists tokens.
  template <int some>
  __device__ void read_again(const Bins& bins, const Finite& mass, const TokenDraw& draw) const {
    MassSum all, above[some];
    Position first[some], last[some];
#pragma unroll
    for (int range = 0; range < some; ++range) {
      int step = step_of(draw, range);
      first[range] = step < 0 ? Bins::at(0) : Bins::at(shared.first[step]);
      last[range] = step < 0 ? Bins::at(-1) : Bins::at(shared.last[step]);
    }
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, listed = 0;
    uint32_t* list = shared.listed[warp];
    each<true>(blocks == 1, [&](const Words& words, uint32_t offset) {
      bool hit = false;
#pragma unroll
      for (int j = 0; j < int(Loads::elements); ++j) {
        float x = element(words, j), unrounded;
        Position position = bins.position(x);
        if (!mass.unrounded(x, unrounded)) unrounded = 0;
        auto of = MassSum::term(unrounded);
        all.add(of);
#pragma unroll
        for (int range = 0; range < some; ++range) {
          bool is_above = position < first[range];
          if (is_above) above[range].add(of);
          hit |= !is_above & (position <= last[range]);
        }
      }
      if (uint32_t lanes = __ballot_sync(~0u, hit)) {
        uint32_t at = listed + __popc(lanes & ((1u << lane) - 1));
        if (hit && at < most_of_warp) list[at] = offset;
        listed += __popc(lanes);
      }
    });
    sync_cluster(blocks);  // the first block has read its part, and has room
    send(bins, list, lane, listed, first, last);
#pragma unroll
    for (int i = 0; i <= some; ++i) {
      uint64_t sum = i ? above[i - 1].of_warp() : all.of_warp();
      if (lane == 0) *of_block(&shared.sums[i][rank * warps + warp], 0) = sum;
    }
  }
  // Gives the first block the tokens that a warp has listed.
  template <int some>
  __device__ void send(const Bins& bins, const uint32_t* list, uint32_t lane, uint32_t listed,
                       const Position (&first)[some], const Position (&last)[some]) const {
    uint32_t* found = of_block(&shared.found, 0);
    Element* elements = of_block(shared.elements, 0);
    if (lane == 0 && listed > most_of_warp) atomicAdd(found, few + 1);
    listed = min(listed, most_of_warp);
    for (uint32_t i = lane; i < (listed + 31) / 32 * 32; i += 32) {
      uint32_t offset = i < listed ? list[i] : 0;
      Words words = loads.load_words(offset, nothing());
      uint32_t hits = 0;
#pragma unroll
      for (int j = 0; j < int(Loads::elements); ++j) {
        Position position = bins.position(element(words, j));
#pragma unroll
        for (int range = 0; range < some; ++range)
          if ((position >= first[range]) & (position <= last[range])) hits |= 1u << j;
      }
      if (i >= listed) hits = 0;
      uint32_t number = __popc(hits), up_to = number;
      for (int distance = 1; distance < 32; distance *= 2) {
        uint32_t other = __shfl_up_sync(~0u, up_to, distance);
        if (int(lane) >= distance) up_to += other;
      }
      uint32_t at = 0;
      if (lane == 31) at = atomicAdd(found, up_to);
      at = __shfl_sync(~0u, at, 31) + up_to - number;
#pragma unroll
      for (int j = 0; j < int(Loads::elements); ++j)
        if (hits >> j & 1) {
          if (at < few)
            elements[at] = Element(order.of(Loads::element(words, j)), loads.position(offset) + uint32_t(j));
          ++at;
        }
    }
  }

  __device__ bool finish(const Bins& bins, const Finite& mass, const TokenDraw& draw) const {
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp <= (step_of(draw, 2) < 0 ? 2u : 3u)) {
      uint64_t sum = 0;
      for (uint32_t i = lane; i < blocks * warps; i += 32) sum += shared.sums[warp][i];
      sum = sum_of_lanes(sum);
      if (lane == 0) shared.totals[warp] = sum;
    }
    __syncthreads();
    if (shared.found > few) return false;
    Listed listed{*this, bins, mass, draw, Held(shared.team), true};
    DrawnTokens drawn;
    auto last = drawn.find(draw, shared.totals[0], listed);
    if (!listed.fits) return false;
    uint32_t token = listed.position(last);
    if (threadIdx.x == 0) rows.write(row, mass, int32_t(token), drawn.kept);
    return true;
  }

  // The listed tokens: those of one range, in which a prefix ends, are held at a time.
  struct Listed {
    const LongRow& of;
    const Bins& bins;
    const Finite& mass;
    const TokenDraw& draw;
    Held held;
    bool fits;

    __device__ const Element& element(int i) const {
      return of.shared.elements[of.shared.held[threadIdx.x + i * threads]];
    }

    __device__ LastTokens<uint32_t> last_of(int step, uint64_t target) {
      const Shared& shared = of.shared;
      bool by_count = step == 0;
      if (by_count && !shared.has_k) return {Held::none, 0, shared.totals[0]};
      uint64_t before = shared.totals[step == 2 ? 1 : step == 1 || !draw.has_fraction ? 2 : 3];
      uint32_t number = choose(step);
      held.take(mass, [&](int i) {
        return threadIdx.x + i * threads < min(number, most_held) ? uint32_t(element(i).key()) : Held::none;
      });
      fits &= number <= most_held;
      if (!by_count) fits &= (target > before) & (target - before <= held.total());
      target -= by_count ? shared.before_k.count : before;
      auto last = held.last_of(mass, by_count, target, [&] {
        float largest = Held::value(held.range.first);
        narrow(by_count, target, [&](uint32_t key) { return largest - Held::value(key); });
      });
      last.sum += before;
      return last;
    }
    // The position of the last of the prefix that was found.
    __device__ uint32_t position(const LastTokens<uint32_t>& last) {
      return held.position(
          last, [&](int i) { return element(i).at(); },
          [&] {
            uint32_t first = held.range.first;
            narrow(true, last.number, [&](uint32_t position) { return float(position - first); });
          });
    }
    // Finds the range of one of many bins between the first and the last key, by sums of weights, where distance(key)
    // is from the first one.
    template <class Distance>
    __device__ void narrow(bool by_count, uint64_t target, const Distance& distance) {
      Shared& shared = of.shared;
      if (held.range.count() <= 8) return;
      auto& fine_sums = shared.fine_sums;
      fine_sums.clear();
      if (threadIdx.x == 0) shared.fine = fine_bins;
      __syncthreads();
      float scale = (fine_bins - 1) / distance(held.range.last);
      auto bin_of = [&](int i) { return min(uint32_t(distance(held.keys[i]) * scale), fine_bins - 1); };
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (held.keys[i] != Held::none) fine_sums.add(bin_of(i), held.weights[i]);
      __syncthreads();
      uint64_t sums[2], before;
#pragma unroll
      for (int i = 0; i < 2; ++i) sums[i] = fine_sums.at(2 * threadIdx.x + i);
      FineScan(shared.fine_scan).ExclusiveSum(sums[0] + sums[1], before);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        uint64_t up_to = before + sums[i];
        if (!Held::reaches(before, by_count, target) && Held::reaches(up_to, by_count, target))
          shared.fine = 2 * threadIdx.x + i, shared.fine_before = before, shared.fine_up_to = up_to;
        before = up_to;
      }
      __syncthreads();
      if (shared.fine == fine_bins) return;
      uint32_t first = Held::none, last = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (held.keys[i] != Held::none && bin_of(i) == shared.fine)
          first = min(first, held.keys[i]), last = max(last, held.keys[i]);
      held.range = {held.team.smallest(first), held.team.largest(last), shared.fine_before, shared.fine_up_to};
    }
    // Lists those of a step's range, and returns how many they are.
    __device__ uint32_t choose(int step) const {
      Shared& shared = of.shared;
      __syncthreads();
      if (threadIdx.x == 0) shared.of_range = 0;
      __syncthreads();
      Position first = Bins::at(shared.first[step]), last = Bins::at(shared.last[step]);
      for (uint32_t i = threadIdx.x; i < shared.found; i += threads) {
        Position position = bins.position(Held::value(shared.elements[i].key()));
        if (!((position >= first) & (position <= last))) continue;
        uint32_t at = atomicAdd(&shared.of_range, 1u);
        if (at < most_held) shared.held[at] = uint16_t(i);
      }
      __syncthreads();
      return shared.of_range;
    }
  };
};

}  // namespace internal
}  // namespace baracuda
