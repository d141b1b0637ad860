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

// Each lane's state joined to all of the lanes before, of `lanes` neighbouring ones.
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

}  // namespace internal
}  // namespace baracuda
