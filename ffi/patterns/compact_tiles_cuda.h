// Which cells of a row are chosen, and how many of them are before each: rows are read once. Tiles are begun in order;
// each says how many chosen cells it has, and learns how many the tiles before it have from what these said.
#pragma once

#include <algorithm>

#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int compact_block = 512, compact_items = 16, compact_tile = compact_block * compact_items;

// A predicate may know of rows without any chosen cell.
template <class Predicate>
__device__ bool is_idle(const Predicate& chosen, int64_t row) {
  if constexpr (requires { chosen.idle(row); }) return chosen.idle(row);
  return false;
}

// What a tile says: nothing yet, the number of its chosen cells, or that of all up to its end. One word, written at
// once, needs no order between writes; sums of integers are the same whichever of the two a tile finds.
enum class Said : uint32_t { nothing, own, all };

struct TileWords {
  uint64_t* words;

  static __device__ Said said(uint64_t word) { return Said(uint32_t(word >> 32)); }
  __device__ void say(int64_t tile, Said what, uint32_t count) const {
    *static_cast<volatile uint64_t*>(words + tile) = uint64_t(what) << 32 | count;
  }
  __device__ uint64_t wait(int64_t tile) const {
    uint64_t word;
    do word = *static_cast<const volatile uint64_t*>(words + tile);
    while (said(word) == Said::nothing);
    return word;
  }

  // Says the count of a tile of a row, and returns that of the tiles before it. For a whole warp, each lane of which
  // asks one tile.
  __device__ uint32_t before(int64_t tile, uint32_t own) const {
    int lane = threadIdx.x % 32;
    if (lane == 0) say(tile, tile == 0 ? Said::all : Said::own, own);
    if (tile == 0) return 0;
    uint32_t sum = 0, knowing = 0;
    for (int64_t nearest = tile - 1; !knowing; nearest -= 32) {
      uint64_t word = nearest >= lane ? wait(nearest - lane) : uint64_t(Said::all) << 32;
      knowing = __ballot_sync(~0u, said(word) == Said::all);
      bool counts = (knowing & ((1u << lane) - 1)) == 0;  // no lane before this one, that is no nearer tile, knows all
      sum += __reduce_add_sync(~0u, counts ? uint32_t(word) : 0);
    }
    if (lane == 0) say(tile, Said::all, sum + own);
    return sum;
  }
};

inline int64_t tiles_of(int64_t count) { return ceil_div(count, compact_tile); }
// A word for each tile, and one before them, from which blocks take the number of their tile.
inline int64_t compact_words(int64_t rows, int64_t count) { return 1 + rows * tiles_of(count); }

// Calls write(row, how many chosen cells of the row are before it, cell) for each chosen cell; `found` gets how many
// there are.
template <class Predicate, class Write, class Found>
__global__ void __launch_bounds__(compact_block, 4)
    compact_tiles(Predicate chosen, Write write, uint64_t* words, Found* found, int64_t rows, int64_t count,
                  int64_t tiles) {
  constexpr int warps = compact_block / 32;
  __shared__ uint32_t places[warps];
  __shared__ uint64_t taken;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t turn = blockIdx.x; turn < rows * tiles; turn += gridDim.x) {
    int64_t job = turn;
    if (tiles > 1) {
      if (threadIdx.x == 0) taken = atomicAdd(reinterpret_cast<unsigned long long*>(words), 1ull);
      __syncthreads();
      job = int64_t(taken);
    }
    int64_t row = job / tiles, tile = job - row * tiles;
    if (!is_idle(chosen, row)) {
      // Each step's bits of a warp are in order, and a warp's cells are neighbours.
      int64_t first = tile * compact_tile + warp * (32 * compact_items) + lane;
      bool keep[compact_items];  // all are known before the first ballot, so that all are read at once
      if ((tile + 1) * compact_tile <= count) {
#pragma unroll
        for (int k = 0; k < compact_items; ++k) keep[k] = chosen(row * count, first + k * 32);
      } else {
#pragma unroll
        for (int k = 0; k < compact_items; ++k) keep[k] = first + k * 32 < count && chosen(row * count, first + k * 32);
      }
      uint32_t bits[compact_items], mine = 0;
#pragma unroll
      for (int k = 0; k < compact_items; ++k) {
        bits[k] = __ballot_sync(~0u, keep[k]);
        mine += __popc(bits[k]);
      }
      if (lane == 0) places[warp] = mine;
      __syncthreads();
      if (warp == 0) {
        uint32_t of_warp = lane < warps ? places[lane] : 0, up_to = of_warp;
#pragma unroll
        for (int step = 1; step < warps; step *= 2) {
          uint32_t earlier = __shfl_up_sync(~0u, up_to, step);
          if (lane >= step) up_to += earlier;
        }
        uint32_t own = __shfl_sync(~0u, up_to, warps - 1);
        uint32_t before = tiles > 1 ? TileWords{words + 1 + row * tiles}.before(tile, own) : 0;
        if (lane < warps) places[lane] = before + up_to - of_warp;
        if (lane == 0 && tile == tiles - 1 && found) found[row] = Found(before + own);
      }
      __syncthreads();
      uint32_t place = places[warp];
#pragma unroll
      for (int k = 0; k < compact_items; ++k) {
        if (bits[k] >> lane & 1) write(row, place + __popc(bits[k] & ((1u << lane) - 1)), first + k * 32);
        place += __popc(bits[k]);
      }
    }
    __syncthreads();
  }
}

template <class Predicate, class Write, class Found>
Status write_compacted(Executor executor, const Predicate& chosen, const Write& write, uint64_t* words, Found* found,
                       int64_t rows, int64_t count) {
  int64_t tiles = tiles_of(count);
  cudaError_t error = cudaMemsetAsync(words, 0, size_t(compact_words(rows, count)) * sizeof(uint64_t), executor.stream);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  unsigned blocks = unsigned(rows * tiles < 0x7fffffff ? rows * tiles : 0x7fffffff);
  compact_tiles<<<blocks, compact_block, 0, executor.stream>>>(chosen, write, words, found, rows, count, tiles);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
