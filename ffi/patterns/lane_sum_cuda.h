// Sums over neighboring lanes, which all of them get.
#pragma once

namespace baracuda {
namespace internal {

template <int lanes = 32, class T>
__device__ T sum_of_lanes(T value) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

}  // namespace internal
}  // namespace baracuda
