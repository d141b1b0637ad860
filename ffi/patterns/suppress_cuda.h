// The suppress pattern on a CUDA grid. Elements are in tiles of 64, in order. First, a block for each pair of tiles
// says which elements of the later tile each element of the earlier one suppresses, a word of 64 bits; of a tile with
// itself a word has the earlier ones that suppress an element. Words of one later tile are next to each other. Then a
// block for each batch goes through the tiles: what is kept of the tiles before, and their words, say what is left of a
// tile. These words do not depend on what is kept, and so those of the next tile are read in the meantime. Within a
// tile one warp decides all elements whose suppressors are decided, until all are.
#pragma once

#include <algorithm>

#include "suppress.h"

namespace baracuda {
namespace internal {

inline constexpr int suppress_tile = 64, suppress_walk = 1024, suppress_held = 4;
inline constexpr int64_t suppress_shared = 40 << 10;  // bytes at most for what is kept of a batch

struct SuppressTiles {
  int64_t tiles;    // of a batch
  uint64_t* words;  // [batches, tiles, 64 tiles]
  uint64_t* kept;   // [batches, tiles], or null: in shared memory

  __device__ uint64_t* of(int64_t batch, int64_t tile) const {
    return words + (batch * tiles + tile) * tiles * suppress_tile;
  }
};

template <class T>
__global__ void __launch_bounds__(suppress_tile) suppress_words(Suppression<T> work, SuppressTiles tiles) {
  using Sum = typename Suppression<T>::Sum;
  __shared__ Box<Sum> others[suppress_tile];
  __shared__ int64_t of_class[suppress_tile];
  int64_t earlier = blockIdx.x, batch = blockIdx.z;
  const T* boxes = work.boxes + batch * work.count * 4;
  const int32_t* order = work.order + batch * work.count;
  int lane = threadIdx.x;
  for (int64_t later = blockIdx.y; later < tiles.tiles; later += gridDim.y) {
    if (later < earlier) continue;
    int64_t first = later * suppress_tile, row = earlier * suppress_tile + lane;
    int others_count = int(min(work.count - first, int64_t(suppress_tile)));
    __syncthreads();
    if (lane < others_count) {
      int32_t index = order[first + lane];
      others[lane] = Box<Sum>(boxes + int64_t(index) * 4);
      of_class[lane] = work.classes.of(batch * work.count + index);
    }
    __syncthreads();
    uint64_t word = 0;
    if (row < work.count) {
      int32_t index = order[row];
      Box<Sum> box(boxes + int64_t(index) * 4);
      int64_t own_class = work.classes.of(batch * work.count + index);
      int end = later == earlier ? lane : others_count;
      for (int i = 0; i < end; ++i)
        if (of_class[i] == own_class && overlap(box, others[i], work.limit)) word |= uint64_t(1) << i;
    }
    tiles.of(batch, later)[row] = word;
  }
}

__device__ inline uint64_t or_of_warp(uint64_t value) {
  uint32_t low = __reduce_or_sync(~0u, uint32_t(value)), high = __reduce_or_sync(~0u, uint32_t(value >> 32));
  return uint64_t(high) << 32 | low;
}

template <class T>
__global__ void __launch_bounds__(suppress_walk) suppress_walk_tiles(Suppression<T> work, SuppressTiles tiles) {
  constexpr int warps = suppress_walk / 32;
  __shared__ uint64_t parts[warps];
  __shared__ int64_t written;
  extern __shared__ uint64_t kept_here[];
  int64_t batch = blockIdx.x;
  int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  uint64_t* kept = tiles.kept == nullptr ? kept_here : tiles.kept + batch * tiles.tiles;
  const int32_t* order = work.order + batch * work.count;
  int32_t* indices = work.indices + batch * work.size;
  if (thread == 0) written = 0;

  // The words of a tile that this thread has: of every 1024th element before it, the first of them held. One warp has
  // those of the tile itself, and its elements.
  uint64_t held[suppress_held], own[2];
  int32_t elements[2];
  auto read = [&](int64_t tile) {
    const uint64_t* words = tiles.of(batch, tile);
    int64_t before = tile * suppress_tile;
#pragma unroll
    for (int k = 0; k < suppress_held; ++k) {
      int64_t row = thread + int64_t(k) * suppress_walk;
      held[k] = row < before ? words[row] : 0;
    }
    if (warp == 0)
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        int64_t row = before + lane + 32 * k;
        own[k] = words[row], elements[k] = row < work.count ? order[row] : 0;
      }
  };
  if (tiles.tiles > 0) read(0);
  for (int64_t tile = 0; tile < tiles.tiles; ++tile) {
    __syncthreads();  // `kept` and `written` of the tile before
    if (written >= work.size) break;
    int64_t before = tile * suppress_tile;
    uint64_t removed = 0, suppressors[2] = {own[0], own[1]};
    int32_t element[2] = {elements[0], elements[1]};
    auto is_kept = [&](int64_t row) { return kept[row / suppress_tile] >> row % suppress_tile & 1; };
#pragma unroll
    for (int k = 0; k < suppress_held; ++k) {
      int64_t row = thread + int64_t(k) * suppress_walk;
      if (row < before && is_kept(row)) removed |= held[k];
    }
    for (int64_t row = thread + int64_t(suppress_held) * suppress_walk; row < before; row += suppress_walk)
      if (is_kept(row)) removed |= tiles.of(batch, tile)[row];
    if (tile + 1 < tiles.tiles) read(tile + 1);
    removed = or_of_warp(removed);
    if (lane == 0) parts[warp] = removed;
    __syncthreads();
    if (warp != 0) continue;
    removed = or_of_warp(parts[lane]);
    int64_t there = work.count - before;  // elements of the tile
    if (there < suppress_tile) removed |= ~uint64_t(0) << there;
    uint64_t chosen = 0;
    while ((chosen | removed) != ~uint64_t(0)) {
      uint32_t keeps[2], drops[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        bool is_open = !((chosen | removed) >> (lane + 32 * k) & 1);
        bool is_dropped = (suppressors[k] & chosen) != 0, is_free = (suppressors[k] & ~removed) == 0;
        keeps[k] = __ballot_sync(~0u, is_open && is_free), drops[k] = __ballot_sync(~0u, is_open && is_dropped);
      }
      chosen |= uint64_t(keeps[1]) << 32 | keeps[0], removed |= uint64_t(drops[1]) << 32 | drops[0];
    }
    int64_t begin = written;
    __syncwarp();
    if (lane == 0) kept[tile] = chosen, written = begin + __popcll(chosen);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      int bit = lane + 32 * k;
      int64_t position = begin + __popcll(chosen & ((uint64_t(1) << bit) - 1));
      if ((chosen >> bit & 1) && position < work.size) indices[position] = element[k];
    }
  }
  __syncthreads();
  int64_t number = min(written, work.size);
  for (int64_t i = number + thread; i < work.size; i += suppress_walk) indices[i] = -1;
  if (thread == 0) work.kept[batch] = int32_t(number);
}

}  // namespace internal

template <class T>
Status suppress(Executor executor, const Suppression<T>& work) {
  internal::SuppressTiles tiles{ceil_div(work.count, internal::suppress_tile), nullptr, nullptr};
  tiles.words = executor.scratch<uint64_t>(work.batches * tiles.tiles * tiles.tiles * internal::suppress_tile);
  int64_t bytes = tiles.tiles * int64_t(sizeof(uint64_t));
  bool is_shared = bytes <= internal::suppress_shared;
  if (!is_shared) tiles.kept = executor.scratch<uint64_t>(work.batches * tiles.tiles);
  if (tiles.tiles > 0 && (tiles.words == nullptr || (!is_shared && tiles.kept == nullptr))) return small_workspace;
  constexpr int64_t most = 65535;
  if (tiles.tiles > 0) {
    for (int64_t first = 0; first < work.batches; first += most) {
      Suppression<T> some = work;
      internal::SuppressTiles of_some = tiles;
      some.batches = std::min(most, work.batches - first);
      some.boxes += first * work.count * 4, some.order += first * work.count;
      if (some.classes.narrow != nullptr) some.classes.narrow += first * work.count;
      if (some.classes.wide != nullptr) some.classes.wide += first * work.count;
      of_some.words += first * tiles.tiles * tiles.tiles * internal::suppress_tile;
      dim3 blocks(unsigned(tiles.tiles), unsigned(std::min(tiles.tiles, most)), unsigned(some.batches));
      internal::suppress_words<<<blocks, internal::suppress_tile, 0, executor.stream>>>(some, of_some);
      if (Status status = launched(); !status.ok()) return status;
    }
  }
  internal::
      suppress_walk_tiles<<<unsigned(work.batches), internal::suppress_walk, is_shared ? bytes : 0, executor.stream>>>(
          work, tiles);
  return launched();
}

}  // namespace baracuda
