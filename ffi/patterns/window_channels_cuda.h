// Large windows of channels that are last, on a CUDA grid. Neighboring lanes have neighboring channels, 16 bytes each,
// and the threads of a team take every so manieth element of a window, some of which they read before they use any.
// Where windows are few, the blocks of a cluster share one. What they found is merged in a fixed order.
#pragma once

#include <algorithm>

#include "cluster_cuda.h"
#include "window_teams_cuda.h"

namespace baracuda {
namespace internal {

// Threads of a block: [teams, parts, lanes], all powers of two.
struct WindowLanes {
  int lanes, parts, teams, blocks;  // blocks of a cluster

  // Of so many vectors of channels.
  WindowLanes(const WindowShape& shape, int64_t vectors) : lanes(1), parts(1), blocks(1) {
    constexpr int64_t multiprocessors = 132, fewest = 4;  // elements of a thread
    constexpr int most_blocks = 8, least_lanes = 4;
    int64_t elements = shape.window_elements(), windows = shape.batches * shape.out[0] * shape.out[1] * shape.out[2];
    auto tiles = [&] { return windows * ceil_div(vectors, lanes); };
    while (lanes < 32 && lanes < vectors) lanes *= 2;
    while (lanes > least_lanes && tiles() * most_blocks < multiprocessors) lanes /= 2;
    while (lanes * parts < window_block && 2 * parts * fewest <= elements) parts *= 2;
    teams = window_block / (lanes * parts);
    while (teams == 1 && blocks < most_blocks && tiles() * blocks < 2 * multiprocessors &&
           2 * blocks * parts * fewest <= elements)
      blocks *= 2;
  }
};

template <int V, class Reducer>
__global__ void __launch_bounds__(window_block)
    reduce_window_channels(Reducer reducer, Windows<int32_t, true> windows, WindowGrid<int32_t> grid, WindowLanes team,
                           typename Reducer::Element* y) {
  using T = typename Reducer::Element;
  using State = typename Reducer::template State<1>;
  constexpr int together = 8;
  __shared__ State states[V][window_block];
  int lane = threadIdx.x % team.lanes, part = threadIdx.x / team.lanes % team.parts;
  int rank = team.blocks > 1 ? int(rank_in_cluster()) : 0;
  int64_t number = int64_t(blockIdx.x / team.blocks) * team.teams + threadIdx.x / (team.lanes * team.parts);
  bool is_there = number < grid.threads;
  auto [batch, d, h, w, group] = grid.position(is_there ? int32_t(number) : 0);
  int channel = (group * team.lanes + lane) * V;
  is_there &= channel < windows.channels;
  auto window = windows.position(batch, d, h, w, is_there ? channel : 0);
  State own[V];
#pragma unroll
  for (int k = 0; k < V; ++k) reducer.start(own[k], window);
  WindowTurns<int32_t> turns(window.extent, rank * team.parts + part, team.blocks * team.parts);
  const T* from = reducer.x + window.first;
  while (is_there && turns.is_there()) {
    Vector<T, V> values[together];
    int offset[together];
#pragma unroll
    for (int u = 0; u < together; ++u) {
      offset[u] = -1;
      if (!turns.is_there()) continue;
      int row = (turns.at[0] * windows.apart(0) * windows.in[1] + turns.at[1] * windows.apart(1)) * windows.in[2];
      offset[u] = row + turns.at[2] * windows.apart(2);
      values[u] = load<V>(from + offset[u] * windows.channels);
      turns.advance();
    }
#pragma unroll
    for (int u = 0; u < together; ++u)
      if (offset[u] >= 0) {
#pragma unroll
        for (int k = 0; k < V; ++k) reducer.take(own[k], {values[u].lane[k]}, window.index + offset[u]);
      }
  }
  for (int half = team.parts / 2; half > 0; half /= 2) {
    if (part >= half && part < 2 * half)
#pragma unroll
      for (int k = 0; k < V; ++k) states[k][threadIdx.x] = own[k];
    __syncthreads();
    if (part < half)
#pragma unroll
      for (int k = 0; k < V; ++k) reducer.merge(own[k], states[k][threadIdx.x + half * team.lanes]);
    __syncthreads();
  }
  if (team.blocks > 1) {
    if (part == 0)
#pragma unroll
      for (int k = 0; k < V; ++k) states[k][threadIdx.x] = own[k];
    sync_cluster(team.blocks);
    if (part == 0 && rank == 0)
      for (int r = 1; r < team.blocks; ++r)
#pragma unroll
        for (int k = 0; k < V; ++k) reducer.merge(own[k], *of_block(&states[k][threadIdx.x], r));
    sync_cluster(team.blocks);
  }
  if (!is_there || part > 0 || rank > 0) return;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    auto of_lane = window;
    of_lane.y_element += k;
    store<1>(y + of_lane.y_element, reducer.finish(own[k], windows, of_lane, Constant<1>{}));
  }
}

template <class Reducer>
Status reduce_window_channels(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                              typename Reducer::Element* y) {
  constexpr int most = 16 / int(sizeof(typename Reducer::Element));
  auto launch = [&](auto width) {
    constexpr int V = decltype(width)::value;
    auto* kernel = reduce_window_channels<V, Reducer>;
    WindowLanes team(shape, ceil_div(shape.channels, V));
    if (team.blocks > 1 && !has_clusters(kernel)) team.blocks = 1;
    WindowGrid<int32_t> grid(shape.batches, shape.out, ceil_div(shape.channels, V * team.lanes));
    unsigned blocks = unsigned(ceil_div(grid.threads, team.teams) * team.blocks);
    return launch_clusters(executor, kernel, blocks, unsigned(team.blocks), window_block, 0, reducer,
                           Windows<int32_t, true>(shape), grid, team, y);
  };
  return shape.channels % most == 0 && !shape.is_listed() ? launch(Constant<most>{}) : launch(Constant<1>{});
}

}  // namespace internal
}  // namespace baracuda
