// What a thread keeps of its loads when it seeks the smallest key of a row: the best so far, and the offset of the load
// that has it first.
#pragma once

#include <limits>

#include "key_at_cuda.h"
#include "larger_in_word_cuda.h"
#include "row_loads_cuda.h"

namespace baracuda {
namespace internal {

template <class Key>
struct BestKey {
  static constexpr int ahead = sizeof(Key) < 4 ? sizeof(Key) : 4;  // loads on their way

  Key least = Key(~Key(0));
  uint32_t at = 0;

  // Elements that are not in `mask` are not of the row.
  template <class Loads, class Search>
  __device__ void take(const Search& search, const typename Loads::Load& load, uint32_t mask, uint32_t offset) {
    Key keys[Loads::elements], best = Key(~Key(0));
    Loads::keys_of(search.order, load, keys);
#pragma unroll
    for (uint32_t j = 0; j < Loads::elements; ++j) keys[j] += search.shift;
    if (mask != Loads::whole) {
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j)
        if (!(mask >> j & 1)) keys[j] = best;
    }
#pragma unroll
    for (uint32_t j = 0; j < Loads::elements; ++j) best = keys[j] < best ? keys[j] : best;
    if (best < least) least = best, at = offset;
  }
  template <class Search>
  __device__ KeyAt<Key> found(const Search&) const {
    return {least, at};
  }
};

// Of floats of 16 bits, two at a time, and no keys but of the last two: their order is that of the maximum of numbers,
// or of numbers times -1. The product is added to 0, which makes one zero of both; NaN stays.
template <class T>
struct BestPair {
  static constexpr bool is_bfloat16 = std::is_same_v<T, BFloat16>;
  static constexpr uint32_t one = is_bfloat16 ? 0x3f80u : 0x3c00u, infinity = is_bfloat16 ? 0x7f80u : 0x7c00u;
  static constexpr uint32_t both = 0x10001u, sign = 0x8000u;
  static constexpr int ahead = 4;

  uint32_t best = both * (infinity | sign), at[2] = {};

  static __device__ uint32_t product(uint32_t a, uint32_t b) {
    uint32_t c;
    if constexpr (is_bfloat16)
      asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(b), "r"(0));
    else
      asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(b), "r"(0));
    return c;
  }
  // Of a search for maxima keys descend.
  template <class Search>
  static __device__ uint32_t turned(const Search& search) {
    return search.order.inverted ? 0 : sign;
  }

  template <class Loads, class Search>
  __device__ void take(const Search& search, typename Loads::Load load, uint32_t mask, uint32_t offset) {
    const uint32_t factor = both * (one | turned(search));
    if (mask != Loads::whole) {
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j)
        if (!(mask >> j & 1)) load.lane[j] = uint16_t(infinity | (turned(search) ^ sign));
    }
    const auto words = bit_cast<Vector<uint32_t, 4>>(load);
    uint32_t most = best;
#pragma unroll
    for (int i = 0; i < 4; ++i) most = larger_in_word<T>(most, product(words.lane[i], factor));
    const uint32_t changed = most ^ best;
    best = most;
    if (changed & 0xffffu) at[0] = offset;
    if (changed >> 16) at[1] = offset;
  }
  // Two elements, with their positions.
  __device__ void take_pair(uint32_t word, uint32_t turned, uint32_t low, uint32_t high) {
    const uint32_t most = larger_in_word<T>(best, product(word, both * (one | turned))), changed = most ^ best;
    best = most;
    if (changed & 0xffffu) at[0] = low;
    if (changed >> 16) at[1] = high;
  }
  template <class Search>
  __device__ KeyAt<uint16_t> half(const Search& search, int k) const {
    return {search.key(uint16_t((k ? best >> 16 : best & 0xffffu) ^ turned(search))), at[k]};
  }
  template <class Search>
  __device__ void merge(const Search& search, const BestPair& other) {
    bool low = other.half(search, 0) < half(search, 0), high = other.half(search, 1) < half(search, 1);
    best = (low ? other.best : best) & 0xffffu | (high ? other.best : best) & 0xffff0000u;
    at[0] = low ? other.at[0] : at[0], at[1] = high ? other.at[1] : at[1];
  }
  template <class Search>
  __device__ KeyAt<uint16_t> found(const Search& search) const {
    KeyAt<uint16_t> low = half(search, 0), high = half(search, 1);
    return high < low ? high : low;
  }
};

}  // namespace internal
}  // namespace baracuda
