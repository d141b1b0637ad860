// The value of a rank among a few in shared memory, by one warp: bit by bit, from the highest.
#pragma once

#include <cstdint>
#include <type_traits>

#include "or_of_warp_cuda.h"

namespace baracuda {
namespace internal {

// All values up to `last` have ranks up to the one that was asked for, but for at most `enough` - 1 others, or equal
// ones. So many values these are.
template <class Value>
struct UpToRank {
  Value last;
  uint32_t values;
  bool has_enough;

  // Of value(0) ... value(count - 1).
  template <class Values>
  __device__ UpToRank(uint32_t count, uint32_t rank, uint32_t enough, const Values& value) {
    using Wide = std::conditional_t<sizeof(Value) == 8, uint64_t, uint32_t>;
    uint32_t lane = threadIdx.x % 32, before = 0;
    Wide found = value(0), differ = 0;
    for (uint32_t i = lane; i < count; i += 32) differ |= value(i) ^ found;
    differ = or_of_warp(differ);
    int bit = sizeof(Wide) == 8 ? 63 - __clzll(differ) : 31 - __clz(uint32_t(differ));
    auto lower = [](int bit) { return bit < 0 ? Wide(0) : Wide((Wide(2) << bit) - 1); };
    found &= ~lower(bit);
    values = count;
    for (; bit >= 0 && values - before > enough; --bit) {
      Wide next = found | Wide(1) << bit;
      uint32_t less = 0;
      for (uint32_t i = lane; i < count; i += 32) less += value(i) < next;
      less = __reduce_add_sync(~0u, less);
      if (less <= rank)
        found = next, before = less;
      else
        values = less;
    }
    last = Value(found | lower(bit));
    has_enough = values - before <= enough;
  }
};

}  // namespace internal
}  // namespace baracuda
