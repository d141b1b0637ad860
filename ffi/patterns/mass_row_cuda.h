// A long row of tokens, by a block or by the blocks of a cluster, in two reads. The first finds the largest element,
// counts tokens by bins of probability, and keeps the few largest. This gives good estimates of all masses, and so the
// bins in which each wanted prefix ends but for bad luck. The second read adds masses, exactly: all, and those above
// each of these ranges of bins; and lists the tokens in the ranges, which are few. Then the first block searches these.
// What an estimate missed is seen by the exact sums, and left.
#pragma once
#pragma once

#include "cluster_cuda.h"
#include "larger_in_word_cuda.h"
#include "mass_listed_cuda.h"
#include "mass_ranges_cuda.h"
#include "row_ring_cuda.h"

namespace baracuda {
namespace internal {

template <class T, class Mass>
struct LongRow {
  using Memory = LongRowMemory<T, Mass>;
  using Shared = typename Memory::Shared;
  using Key = typename Memory::Key;
  using Element = typename Memory::Element;
  using Finite = typename Mass::Finite;
  using Bins = MassBins<Mass>;
  using Position = typename Bins::Position;
  using Loads = typename Memory::Loads;
  using Words = typename Memory::Words;
  using Ring = RowRing<Loads, Key, Memory::threads, Memory::stages, Memory::chunks_of_slot>;
  static constexpr int threads = Memory::threads, warps = Memory::warps, ranges = Memory::ranges;
  static constexpr uint32_t few = Memory::few, most_of_thread = Memory::most_of_thread,
                            most_of_warp = Memory::most_of_warp, most_large = Memory::most_large;

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
      MassRanges<T, Mass>{shared, rank, blocks}.find(bins, mass, draw);
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
  __device__ Ring ring() const { return {loads, shared.ring, nothing()}; }

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
    ring().template each<false>(false, [&](const Words& of, int32_t) {
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
    ring().template each<true>(blocks == 1, [&](const Words& words, int32_t chunk) {
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
    ListedTokens<T, Mass> listed{shared, mass, draw, true};
    DrawnTokens drawn;
    auto last = drawn.find(draw, shared.totals[0], listed);
    if (!listed.fits) return false;
    if (threadIdx.x == 0) rows.write(row, mass, int32_t(last.token), drawn.kept);
    return true;
  }
};

}  // namespace internal
}  // namespace baracuda
