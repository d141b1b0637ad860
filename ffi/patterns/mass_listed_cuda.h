// Prefixes of a long row that end among tokens which a block has listed in shared memory.
#pragma once

#include "mass_row_memory_cuda.h"
#include "mass_search_cuda.h"

namespace baracuda {
namespace internal {

// The listed tokens. Sums of weights by bins in a range tell the bin in which a prefix ends. Its tokens are few, and
// each is compared with all.
template <class T, class Mass>
struct ListedTokens {
  using Memory = LongRowMemory<T, Mass>;
  using Shared = typename Memory::Shared;
  using Finite = typename Mass::Finite;
  using Element = typename Memory::Element;
  using Weighted = typename Memory::Weighted;
  static constexpr int threads = Memory::threads, count_bit = Memory::count_bit;
  static constexpr uint32_t most_near = Memory::most_near;
  static constexpr uint64_t one = Memory::one;

  struct Last {
    uint32_t token;
    uint64_t sum;
  };

  Shared& shared;
  const Finite& mass;
  const TokenDraw& draw;
  bool fits;

  static __device__ uint64_t mass_of(uint64_t weight) { return weight & (one - 1); }
  static __device__ float value(const Element& element) { return float(SortKey<T>::number(element.key(), true)); }
  // Calls body(element, number, weight) for those in a range that have a mass.
  template <class Body>
  __device__ void each_of(const TokenRange& range, const Body& body) const {
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < shared.found; i += threads) {
      Element element = shared.elements[i];
      float x = value(element);
      uint64_t of_token = range.has(x) ? mass.mass(x) : 0;
      if (of_token) body(element, x, of_token | one);
    }
  }

  __device__ bool differs(uint32_t key, uint32_t number) const {
    bool any = false;
    for (uint32_t i = threadIdx.x; i < number; i += threads) any |= shared.near[i].element.key() != key;
    return any;
  }
  __device__ Last last_of(int step, uint64_t target) {
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

}  // namespace internal
}  // namespace baracuda
