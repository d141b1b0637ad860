// Sums of masses, exact: of a thread, and of a block by atomics.
#pragma once

#include "lane_sum_cuda.h"

namespace baracuda {
namespace internal {

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

// Sums of 64 bits in two words: there are no 64-bit atomics.
template <int threads, int number>
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

// Sums up to and with each lane.
template <class Value>
__device__ Value sum_up_to(Value value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    Value before = __shfl_up_sync(~0u, value, distance);
    if (int(threadIdx.x % 32) >= distance) value += before;
  }
  return value;
}

}  // namespace internal
}  // namespace baracuda
