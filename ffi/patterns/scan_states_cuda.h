// What the drivers of scans share on CUDA: states on their way between the lanes of a warp, and totals of parts of
// lines.
#pragma once

#include <cstring>

#include "scan.h"

namespace baracuda {
namespace internal {

inline constexpr int scan_block = 256;  // threads, at most

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

// Of the parts that lines are to be cut into, as many as the workspace has room for the totals of; at least one.
template <class State>
int64_t parts_that_fit(const Executor& executor, int64_t lines, int64_t parts) {
  int64_t room = int64_t(executor.workspace_bytes / 256 * 256 / (size_t(lines) * sizeof(State)));
  parts = parts < room ? parts : room;
  return parts > 1 ? parts : 1;
}

// Puts what comes before each part of a line in the place of its total.
template <class Functor>
struct ScanTotals {
  using State = typename Functor::State;
  using Element = State;
  static constexpr int inputs = 1;
  State* totals;

  BARACUDA_HD static State none() { return Functor::none(); }
  template <class At>
  BARACUDA_HD State read(const At& at) const {
    return totals[at.cell];
  }
  template <class At>
  BARACUDA_HD State term(const At&, const State& total, int) const {
    return total;
  }
  BARACUDA_HD static State join(const State& a, const State& b) { return Functor::join(a, b); }
  template <class At>
  BARACUDA_HD void write(const At& at, const State&, const State (&s)[1]) const {
    totals[at.cell] = s[0];
  }
};

}  // namespace internal
}  // namespace baracuda
