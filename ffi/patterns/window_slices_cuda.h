// Long windows of planes that are one row, on a CUDA grid: sequences, and planes that are one window. A team of
// threads, or a cluster of blocks, takes a window in chunks of 16 bytes, aligned in memory wherever the window begins,
// and reads some before it uses any. What its threads found is merged in a fixed order.
#pragma once

#include "cluster_cuda.h"
#include "window_rows_cuda.h"
#include "window_teams_cuda.h"

namespace baracuda {
namespace internal {

// The state of a lane that many lanes above.
template <int lanes, class State>
__device__ State state_above(const State& state, int distance) {
  constexpr int words = sizeof(State) / 4;
  uint32_t word[words];
  memcpy(word, &state, sizeof(State));
#pragma unroll
  for (int k = 0; k < words; ++k) word[k] = __shfl_down_sync(~0u, word[k], distance, lanes);
  State above;
  memcpy(&above, word, sizeof(State));
  return above;
}
// Merges the states of neighboring lanes into that of the first.
template <int lanes, class Reducer, class State>
__device__ void merge_lanes(const Reducer& reducer, State& state) {
#pragma unroll
  for (int half = lanes / 2; half > 0; half /= 2) reducer.merge(state, state_above<lanes>(state, half));
}

// 16 bytes of x, aligned in memory: the index of the first element, and the row [first, end) of a window, outside which
// none are the window's.
template <class T>
struct WindowChunk {
  static constexpr int V = 16 / sizeof(T);
  int element, first, end;

  __device__ bool is_there(int k) const { return unsigned(element + k - first) < unsigned(end - first); }
  __device__ bool is_whole() const { return element >= first && element + V <= end; }
  // Whether it can be read at once: an end of x may cut it off.
  __device__ bool is_in(int x_elements) const { return element >= 0 && element < end && element + V <= x_elements; }
  __device__ uint4 read(const T* x, int x_elements) const {
    return is_in(x_elements) ? *reinterpret_cast<const uint4*>(x + element) : uint4{};
  }
  template <class Reducer, class State>
  __device__ void take(const Reducer& reducer, State& state, uint4 words, int shift, int x_elements) const {
    Vector<T, V> values;
    memcpy(&values, &words, 16);
    if (is_whole()) {
#pragma unroll
      for (int k = 0; k < V; ++k) reducer.take(state, {values.lane[k]}, element + shift + k);
    } else if (is_in(x_elements)) {
#pragma unroll
      for (int k = 0; k < V; ++k)
        if (is_there(k)) reducer.take(state, {values.lane[k]}, element + shift + k);
    } else {
#pragma unroll 1
      for (int k = 0; k < V; ++k)
        if (is_there(k)) reducer.take(state, load<1>(reducer.x + element + k), element + shift + k);
    }
  }
};

// A thread takes every so manieth chunk. A team of more than a block is a cluster.
template <int team, class Reducer>
__global__ void __launch_bounds__(window_block)
    reduce_window_slices(Reducer reducer, Windows<int32_t, true> windows, int count, int x_elements,
                         typename Reducer::Element* y) {
  using T = typename Reducer::Element;
  using State = typename Reducer::template State<1>;
  using Chunk = WindowChunk<T>;
  constexpr int blocks = team > window_block ? team / window_block : 1, threads = team / blocks, V = Chunk::V;
  constexpr int teams = window_block / threads, warps = threads / 32;
  constexpr int lanes = threads < 32 ? threads : 32, together = 4;
  int part = threadIdx.x % threads, rank = blocks > 1 ? int(rank_in_cluster()) : 0;
  int number = int(blockIdx.x) / blocks * teams + int(threadIdx.x) / threads;
  bool is_there = number < count;
  if (!is_there) number = 0;
  int batch = windows.by_out[2].quotient(number), w = number - batch * windows.out[2];
  auto span = windows.span(2, batch, 0, w);
  int first = batch * windows.in[2] + span.first, shift = span.first - first;
  WindowPosition<int32_t> window{
      number, first, span.count > 0 ? span.first : windows.in[2], {0, 0, w}, {1, 1, span.count}};
  State state;
  reducer.start(state, window);
  int end = is_there ? first + span.count : first;
  int misaligned = int((unsigned(first) + unsigned(reinterpret_cast<uintptr_t>(reducer.x) / sizeof(T))) % V);
  for (int element = first - misaligned + (rank * threads + part) * V; element < end; element += together * team * V) {
    uint4 words[together];
    auto chunk = [&](int u) { return Chunk{element + u * team * V, first, end}; };
#pragma unroll
    for (int u = 0; u < together; ++u) words[u] = chunk(u).read(reducer.x, x_elements);
#pragma unroll
    for (int u = 0; u < together; ++u) chunk(u).take(reducer, state, words[u], shift, x_elements);
  }
  merge_lanes<lanes>(reducer, state);
  if constexpr (warps > 1) {
    __shared__ State states[window_block / 32];
    if (threadIdx.x % 32 == 0) states[threadIdx.x / 32] = state;
    __syncthreads();
    if (part < 32) {
      state = states[threadIdx.x / threads * warps + part % warps];
      merge_lanes<warps>(reducer, state);
    }
  }
  if constexpr (blocks > 1) {
    __shared__ State whole;
    if (threadIdx.x == 0) whole = state;
    sync_cluster(blocks);
    if (rank == 0 && threadIdx.x < 32) {
      state = *internal::of_block(&whole, threadIdx.x % blocks);
      merge_lanes<blocks>(reducer, state);
    }
    sync_cluster(blocks);
  }
  if (is_there && rank == 0 && part == 0) store<1>(y + number, reducer.finish(state, windows, window, Constant<1>{}));
}

// Whether planes are one row, and the elements of a window follow each other.
inline bool are_slices(const WindowShape& shape) {
  return shape.channels == 1 && shape.in[0] == 1 && shape.in[1] == 1 && shape.dilation[2] == 1 &&
         WindowRow::are_windows(shape);
}

template <class Reducer>
Status reduce_window_slices(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                            typename Reducer::Element* y) {
  int64_t count = shape.batches * shape.out[2];
  int64_t chunks = shape.window_elements() / WindowChunk<typename Reducer::Element>::V + 1;
  auto launch = [&](auto team) {
    constexpr int size = decltype(team)::value, blocks = size > window_block ? size / window_block : 1;
    unsigned all = unsigned(blocks > 1 ? count * blocks : ceil_div(count, window_block / size));
    return launch_clusters(executor, reduce_window_slices<size, Reducer>, all, blocks, window_block, 0, reducer,
                           Windows<int32_t, true>(shape), int(count), int(shape.x_elements()), y);
  };
  // Of teams that give each thread a few chunks, the smallest that gives the device enough threads.
  auto are_few = [&](int team) { return count * team < enough_windows * 3 / 4; };
  if (are_few(256) && chunks >= 4 * 2048 && has_clusters(reduce_window_slices<2048, Reducer>))
    return launch(Constant<2048>{});
  if (are_few(64) && chunks >= 3 * 256) return launch(Constant<256>{});
  if (are_few(8) && chunks >= 3 * 64) return launch(Constant<64>{});
  if (chunks >= 3 * 8) return launch(Constant<8>{});
  return chunks >= 3 * 4 ? launch(Constant<4>{}) : launch(Constant<2>{});
}

}  // namespace internal
}  // namespace baracuda
