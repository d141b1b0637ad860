// The largest or the smallest of the bits of floats, NaN where one is and 0 above -0, by the GPU's own instructions.
#pragma once

#include "../greater.h"
#include "lanes.h"

namespace baracuda {

// Whether there are instructions for the extremum of several floats of so many bytes.
template <class Key>
inline constexpr bool has_extremum = has_extreme_instructions && (sizeof(Key) == 2 || sizeof(Key) == 4);

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
namespace internal {

#define BARACUDA_STRONGER(NAME, INSTRUCTION)                       \
  struct NAME {                                                    \
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const { \
      uint32_t c;                                                  \
      asm(INSTRUCTION " %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));  \
      return c;                                                    \
    }                                                              \
  };
BARACUDA_STRONGER(GreaterHalves, "max.NaN.f16x2")
BARACUDA_STRONGER(LesserHalves, "min.NaN.f16x2")
BARACUDA_STRONGER(GreaterBFloat16s, "max.NaN.bf16x2")
BARACUDA_STRONGER(LesserBFloat16s, "min.NaN.bf16x2")
#undef BARACUDA_STRONGER

template <bool is_max>
struct StrongerFloat {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const {
    float x = __uint_as_float(a), y = __uint_as_float(b);
    return __float_as_uint(is_max ? greater(x, y) : lesser(x, y));
  }
};

}  // namespace internal

// Of n elements of each of V lanes, of float32, or of float16 or bfloat16 two at a time. `mask` are the bits that
// count.
template <int V, int n, class Elements, class Stronger>
__device__ void extremum_by(const Stronger& stronger, const Elements& x, uint32_t mask, uint32_t (&best)[V]) {
  for (int k = 0; k < V; ++k) best[k] = folded<0, n>([&](int i) { return x(i, k) & mask; }, stronger);
}
template <int V, int n, class Elements, class Stronger>
__device__ void extremum_by(const Stronger& stronger, const Elements& x, uint16_t mask, uint16_t (&best)[V]) {
  uint32_t masks = mask * 0x10001u;
  auto pair = [&](const uint16_t& first) { return pair_from(first) & masks; };
  if constexpr (V % 2 == 0) {
    for (int k = 0; k < V; k += 2) {
      uint32_t both = folded<0, n>([&](int i) { return pair(x(i, k)); }, stronger);
      best[k] = uint16_t(both), best[k + 1] = uint16_t(both >> 16);
    }
  } else {
    static_assert(V == 1);
    uint32_t both;
    if constexpr (n % 2 == 0)
      both = folded<0, n / 2>([&](int i) { return pair(x(2 * i, 0)); }, stronger);
    else
      both = folded<0, n>([&](int i) { return x(i, 0) * 0x10001u & masks; }, stronger);
    best[0] = uint16_t(stronger(both, both >> 16));
  }
}

template <int V, int n, class Order, class Elements>
__device__ void extremum(const Order& order, const Elements& x, uint32_t (&best)[V]) {
  if (order.inverted) return extremum_by<V, n>(internal::StrongerFloat<false>{}, x, order.mask, best);
  extremum_by<V, n>(internal::StrongerFloat<true>{}, x, order.mask, best);
}
template <int V, int n, class Order, class Elements>
__device__ void extremum(const Order& order, const Elements& x, uint16_t (&best)[V]) {
  bool is_half = order.infinity == 0x7c00u;
  if (is_half && order.inverted) return extremum_by<V, n>(internal::LesserHalves{}, x, order.mask, best);
  if (is_half) return extremum_by<V, n>(internal::GreaterHalves{}, x, order.mask, best);
  if (order.inverted) return extremum_by<V, n>(internal::LesserBFloat16s{}, x, order.mask, best);
  extremum_by<V, n>(internal::GreaterBFloat16s{}, x, order.mask, best);
}

#else
template <int V, int n, class... Any>
void extremum(const Any&...);
#endif

}  // namespace baracuda
