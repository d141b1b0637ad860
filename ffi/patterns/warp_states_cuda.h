// States on their way between the lanes of a warp. A functor has a State, `none` and an associative `join`.
#pragma once

#include <cstdint>
#include <cstring>

namespace baracuda {
namespace internal {

template <class State>
inline constexpr int state_words = int((sizeof(State) + 3) / 4);

template <class State, class Move>
__device__ State moved(const State& state, const Move& move) {
  uint32_t words[state_words<State>]{};
  memcpy(words, &state, sizeof(State));
  for (uint32_t& word : words) word = move(word);
  State other;
  memcpy(&other, words, sizeof(State));
  return other;
}

// The state of the lane `distance` above; on the first lanes, of any.
template <class State>
__device__ State state_above(const State& state, int distance) {
  return moved(state, [&](uint32_t word) { return __shfl_up_sync(0xffffffffu, word, distance); });
}
template <class State>
__device__ State state_of_lane(const State& state, int lane) {
  return moved(state, [&](uint32_t word) { return __shfl_sync(0xffffffffu, word, lane); });
}

// Each lane's state joined to all of the lanes before, of `lanes` neighboring ones.
template <class Functor, class State = typename Functor::State>
__device__ State scan_in_warp(State state, int lanes = 32) {
  int lane = threadIdx.x % lanes;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    if (distance >= lanes) break;
    State before = state_above(state, distance);
    if (lane >= distance) state = Functor::join(before, state);
  }
  return state;
}

struct WarpLanes {
  template <class T>
  __device__ T largest(T x) const {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) x = fmax(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
  }
  __device__ bool all(bool x) const { return __all_sync(0xffffffffu, x); }
};

// K scans, each of one state of every lane. States that can be aligned are added, which takes fewer steps than to join
// them.
template <class Functor, int K, class State = typename Functor::State>
__device__ void scan_each_in_warp(State (&states)[K]) {
  if constexpr (requires { typename Functor::Sums; }) {
    using Sums = typename Functor::Sums;
    typename Sums::State most, sums[K];
    if (Functor::align(states, WarpLanes{}, most, sums)) {
#pragma unroll
      for (int k = 0; k < K; ++k) states[k] = {most, scan_in_warp<Sums>(sums[k])};
      return;
    }
  }
#pragma unroll
  for (int k = 0; k < K; ++k) states[k] = scan_in_warp<Functor>(states[k]);
}

// All of the warp's states joined.
template <class Functor, class State = typename Functor::State>
__device__ State sum_of_warp(const State& state) {
  State states[1] = {state};
  scan_each_in_warp<Functor>(states);
  return state_of_lane(states[0], 31);
}

}  // namespace internal
}  // namespace baracuda
