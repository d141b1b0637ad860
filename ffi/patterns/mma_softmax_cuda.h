// Softmax of scores that tensor cores computed, whose rows four lanes of a warp have.
//
// Weights are relative to a score of the row that may be less than the largest one so far, but by no more than `margin`
// units of log(2): so sums are seldom scaled.
#pragma once

#include "../kernels/attention.h"

namespace baracuda {
namespace internal {

// 2^x, to two units in the last place; 0 where that is subnormal.
__device__ inline float fast_power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The sum over the four lanes that have a row.
__device__ inline float sum_of_row(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  x += __shfl_xor_sync(~0u, x, 2);
  return x;
}

// Sums over keys of 2^(score - offset) of a row's scores, as a lane has them; `limit` is the score that makes the
// offset larger.
struct MmaState {
  static constexpr float margin = 8, nothing = SoftmaxState<float>::nothing;
  float limit = nothing, offset = 0, total = 0;

  // Lets the offset be large enough for the largest score / factor. By what the sums so far are multiplied.
  __device__ float grow(float top, float factor) {
    if (!(top > limit)) return 1;
    float before = offset;
    offset = top * factor;
    float kept = limit == nothing ? 0.f : fast_power_of_two(before - offset);
    limit = top + __fdividef(margin, factor);
    total *= kept;
    return kept;
  }
};

}  // namespace internal
}  // namespace baracuda
