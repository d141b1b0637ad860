// The ranges of tokens in which prefixes of a long row end, as counts of tokens by bins tell: masses are estimated, and
// a range has room for how wrong the estimates may be.
#pragma once

#include "cluster_cuda.h"
#include "mass_row_memory_cuda.h"

namespace baracuda {
namespace internal {

// Of all blocks of a cluster, each of which has the counts of its part.
template <class T, class Mass>
struct MassRanges {
  using Memory = LongRowMemory<T, Mass>;
  using Shared = typename Memory::Shared;
  using Finite = typename Mass::Finite;
  using Bins = MassBins<Mass>;
  static constexpr int threads = Memory::threads, warps = Memory::warps, groups = Memory::groups,
                       ranges = Memory::ranges;
  static constexpr uint32_t most_large = Memory::most_large;

  Shared& shared;
  unsigned rank, blocks;

  // Finds the range of tokens for each step of the search.
  __device__ void find(const Bins& bins, const Finite& mass, const TokenDraw& draw) const {
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

 private:
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
};

}  // namespace internal
}  // namespace baracuda
