// Large windows of one channel on a CUDA grid: a team of threads for each, of which one takes every so manieth element,
// row by row. What they found is merged in a fixed order.
#pragma once

#include "window.h"

namespace baracuda {
namespace internal {

inline constexpr int window_block = 256;

// A thread's position in an array [batches, D, H, W, channels / V].
template <class Index>
struct WindowGrid {
  int64_t threads;
  Divisor<Index> d, h, w, groups;

  WindowGrid(int64_t batches, const int64_t* extents, int64_t groups)
      : threads(batches * extents[0] * extents[1] * extents[2] * groups),
        d(extents[0]),
        h(extents[1]),
        w(extents[2]),
        groups(groups) {}
  struct Position {
    Index batch, d, h, w, group;
  };
  static __device__ Index split(const Divisor<Index>& extent, Index& index) {
    Index quotient = extent.quotient(index), rest = index - quotient * extent.value;
    index = quotient;
    return rest;
  }
  __device__ Position position(Index index) const {
    Position position;
    position.group = split(groups, index);
    position.w = split(w, index);
    position.h = split(h, index);
    position.d = split(d, index);
    position.batch = index;
    return position;
  }
};

// A window's elements in turns: those of one thread are `parts` apart.
template <class Index>
struct WindowTurns {
  Index extent[3], at[3], by[3];

  __device__ WindowTurns(const Index* extents, Index part, Index parts) {
    for (int a = 0; a < 3; ++a) extent[a] = extents[a];
    split(part, at), split(parts, by);
  }
  __device__ bool is_there() const { return at[0] < extent[0]; }
  __device__ void advance() {
    for (int a = 0; a < 3; ++a) at[a] += by[a];
    if (at[2] >= extent[2]) at[2] -= extent[2], ++at[1];
    if (at[1] >= extent[1]) at[1] -= extent[1], ++at[0];
  }

 private:
  // One beyond the last where there are no elements.
  __device__ void split(Index count, Index* position) const {
    Index width = extent[2], plane = extent[1] * width;
    position[0] = plane > 0 ? count / plane : extent[0];
    Index rest = plane > 0 ? count - position[0] * plane : Index(0);
    position[1] = width > 0 ? rest / width : Index(0), position[2] = rest - position[1] * width;
  }
};

template <int team, class Reducer>
__global__ void __launch_bounds__(window_block)
    reduce_window_teams(Reducer reducer, Windows<int32_t, true> windows, WindowGrid<int32_t> grid,
                        typename Reducer::Element* y) {
  using State = typename Reducer::template State<1>;
  constexpr int teams = window_block / team, together = 4;
  __shared__ State states[window_block];
  auto sync = [] {
    if constexpr (team <= 32)
      __syncwarp();
    else
      __syncthreads();
  };
  int part = threadIdx.x % team;
  int64_t number = int64_t(blockIdx.x) * teams + threadIdx.x / team;
  bool is_there = number < grid.threads;
  auto [batch, d, h, w, group] = grid.position(is_there ? int32_t(number) : 0);
  auto window = windows.position(batch, d, h, w, 0);
  State state;
  reducer.start(state, window);
  WindowTurns<int32_t> turns(window.extent, part, team);
  while (is_there && turns.is_there()) {
    // Some are read before any is used.
    typename Reducer::template Elements<1> elements[together];
    int count = 0;
#pragma unroll
    for (int u = 0; u < together; ++u)
      if (turns.is_there()) {
        int row = (turns.at[0] * windows.apart(0) * windows.in[1] + turns.at[1] * windows.apart(1)) * windows.in[2];
        int offset = row + turns.at[2] * windows.apart(2);
        elements[u] = reducer.template stage<1>(window.first + offset, Constant<1>{}, window.index + offset);
        turns.advance();
        count = u + 1;
      }
#pragma unroll
    for (int u = 0; u < together; ++u)
      if (u < count) reducer.push(state, elements[u]);
  }
#pragma unroll
  for (int half = team / 2; half > 0; half /= 2) {
    if (part >= half && part < 2 * half) states[threadIdx.x] = state;
    sync();
    if (part < half) reducer.merge(state, states[threadIdx.x + half]);
    sync();
  }
  if (is_there && part == 0) store<1>(y + window.y_element, reducer.finish(state, windows, window, Constant<1>{}));
}

// Enough of them for every thread of a device.
inline constexpr int64_t enough_windows = 132 * 1024;

// Whether windows are so large that one thread for each would be too few, or would read too far from its neighbors.
inline bool are_for_teams(const WindowShape& shape) {
  if (shape.channels == 1)
    return shape.window_elements() >= 32 && (shape.in[2] >= 4 * shape.out[2] || shape.y_elements() < enough_windows);
  return shape.window_elements() >= 64 && shape.y_elements() < enough_windows;
}

template <class Reducer>
Status reduce_window_teams(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                           typename Reducer::Element* y) {
  auto launch = [&](auto team) {
    WindowGrid<int32_t> grid(shape.batches, shape.out, 1);
    unsigned blocks = unsigned(ceil_div(grid.threads, window_block / team.value));
    reduce_window_teams<team.value>
        <<<blocks, window_block, 0, executor.stream>>>(reducer, Windows<int32_t, true>(shape), grid, y);
    return launched();
  };
  int64_t elements = shape.window_elements();
  if (elements >= 2048 && shape.y_elements() < enough_windows / 8) return launch(Constant<256>{});
  return elements >= 256 ? launch(Constant<32>{}) : launch(Constant<8>{});
}

}  // namespace internal
}  // namespace baracuda
