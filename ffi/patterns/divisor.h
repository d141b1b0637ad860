// Division by extents and strides, which index arithmetic does for every element.
#pragma once

#include "../kernels/number.h"

namespace baracuda {

// Below this many elements, 32 bits are enough for the position of one, and for what a block goes beyond the last.
inline constexpr int64_t narrow_reach = (int64_t(1) << 31) - (1 << 20);

// A number that is divided by often. In 32 bits, a multiplication does it (Granlund and Montgomery, Division by
// invariant integers using multiplication, 1994), for dividends below 2^31.
template <class Index>
struct Divisor {
  Index value;
  Divisor() = default;
  explicit Divisor(int64_t d) : value(d) {}
  BARACUDA_HD Index quotient(Index n) const { return n / value; }
};

template <>
struct Divisor<int32_t> {
  int32_t value;
  uint32_t factor;
  int shift;
  Divisor() = default;
  explicit Divisor(int64_t d) : value(int32_t(d)), shift(0) {
    while ((int64_t(1) << shift) < d) ++shift;
    factor = uint32_t((((uint64_t(1) << shift) - uint64_t(d)) << 32) / uint64_t(d) + 1);
  }
  BARACUDA_HD int32_t quotient(int32_t n) const {
#ifdef __CUDA_ARCH__
    uint32_t high = __umulhi(uint32_t(n), factor);
#else
    uint32_t high = uint32_t((uint64_t(uint32_t(n)) * factor) >> 32);
#endif
    return int32_t((high + uint32_t(n)) >> shift);
  }
};

}  // namespace baracuda
