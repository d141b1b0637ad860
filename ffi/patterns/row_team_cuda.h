// The threads of a block that have a row: those of one threadIdx.y, blockDim.x lanes, a power of two.
#pragma once

#include "warp_states_cuda.h"

namespace baracuda {
namespace internal {

template <class State>
__device__ State from_lane(const State& state, int offset) {
  return moved(state, [&](uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, offset); });
}

// The state of `lanes` neighboring threads of a warp, a power of two, in each of them. A functor that merges states
// faster where these agree has `agree(state, of_all)`, and of_all(x, join) is what all threads have for x.
template <class Functor, class State>
__device__ State of_lanes(const Functor& functor, State state, int lanes) {
  if (lanes == 1) return state;
  auto of_all = [&](auto x, const auto& join) {
    for (int offset = 1; offset < 32 && offset < lanes; offset *= 2)
      x = join(x, __shfl_xor_sync(0xffffffffu, x, offset));
    return x;
  };
  if constexpr (requires { functor.agree(state, of_all); }) functor.agree(state, of_all);
  for (int offset = 1; offset < 32 && offset < lanes; offset *= 2) functor.merge(state, from_lane(state, offset));
  return state;
}

// The state of the lanes of a row, in each of them. All threads of the block take part; `shared` has an element for
// each warp.
template <class Functor, class State>
__device__ State of_row(const Functor& functor, State state, State* shared) {
  int lanes = blockDim.x;
  state = of_lanes(functor, state, lanes);
  if (lanes <= 32) return state;
  int warps = lanes / 32, first = threadIdx.y * warps;
  if (threadIdx.x % 32 == 0) shared[first + threadIdx.x / 32] = state;
  __syncthreads();
  state = shared[first];
  for (int k = 1; k < warps; ++k) functor.merge(state, shared[first + k]);
  return state;
}

}  // namespace internal
}  // namespace baracuda
