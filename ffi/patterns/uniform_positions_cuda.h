// Where a number is among edges that are meant to be uniform, by arithmetic whose error on these edges is known.
#pragma once

#include "../kernels/histogram.h"

namespace baracuda {
namespace internal {

// A number's position rises with it, from 0 to bins + 1, and that of edge i is i + 1/2 but for an error. So a number
// whose position is further than the largest error from the nearest i + 1/2 is between the edges around it. Any other
// is above the edge before edge i and below the one after it, since errors are less than 1/2.
template <class Value>
struct UniformPositions {
  Value scale, offset, last, certain = 0;

  UniformPositions() = default;
  // Looks for the largest error, with all threads of the block.
  template <class T>
  __device__ UniformPositions(const Bins<T>& bins) : last(Value(int(bins.count) + 1)) {
    if (!bins.uniform) return;
    scale = bins.scale / last;
    offset = fma(-bins.low, scale, Value(0.5) / last);
    __shared__ uint32_t largest;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    float mine = 0;
    for (int i = threadIdx.x; i <= int(bins.count); i += blockDim.x) {
      float error = float(fabs(fma(part(Value(bins.edges[i])), last, -(Value(i) + Value(0.5)))));
      mine = error < 0.5f ? fmaxf(mine, error) : 0.5f;
    }
    atomicMax(&largest, __float_as_uint(mine));  // bits of floats that are not negative have their order
    __syncthreads();
    constexpr float roundings = 0x1p-20f;  // of errors, and of how far off a position is
    certain = Value(0.5f - __uint_as_float(largest) - roundings);
  }
  __device__ bool known() const { return certain > Value(0); }

  // The integer nearest to the position, and how far off it is. NaN is at 0.
  __device__ uint32_t of(Value x, Value& off) const {
    constexpr Value integers = Value(sizeof(Value) == 8 ? 0x1.8p52 : 0x1.8p23);  // numbers around it have no fractions
    Value part = this->part(x), nearest = fma(part, last, integers);
    off = fma(part, last, integers - nearest);
    return low_word(nearest) - low_word(integers);
  }
  __device__ bool sure(Value off) const { return fabs(off) < certain; }

 private:
  // The position, as a part of `last`.
  __device__ Value part(Value x) const {
    if constexpr (sizeof(Value) == 8)
      return fmin(fmax(fma(x, scale, offset), 0.0), 1.0);
    else
      return __saturatef(fmaf(x, scale, offset));
  }
  static __device__ uint32_t low_word(float x) { return __float_as_uint(x); }
  static __device__ uint32_t low_word(double x) { return uint32_t(__double2loint(x)); }
};

}  // namespace internal
}  // namespace baracuda
