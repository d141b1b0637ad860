// Which cells of a row are chosen, and how many of them are before each: rows are read once, by tiles that look back.
#pragma once

#include <algorithm>

#include "look_back_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int compact_block = 256, compact_items = 16, compact_tile = compact_block * compact_items;

// A predicate may know of rows without any chosen cell.
template <class Predicate>
__device__ bool is_idle(const Predicate& chosen, int64_t row) {
  if constexpr (requires { chosen.idle(row); }) return chosen.idle(row);
  return false;
}

// How many chosen cells there are.
struct ChosenCells {
  using State = uint32_t;
  static __device__ State none() { return 0; }
  static __device__ State join(State a, State b) { return a + b; }
};

// Calls write(row, how many chosen cells of the row are before it, cell) for each chosen cell; `found` gets how many
// there are.
template <class Predicate, class Write, class Found>
__global__ void __launch_bounds__(compact_block, 8)
    compact_tiles(Predicate chosen, Write write, LookBack<ChosenCells> look, Found* found, int64_t count) {
  constexpr int warps = compact_block / 32;
  __shared__ uint32_t places[warps];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int64_t tiles = look.parts;
  for (int64_t job = blockIdx.x; job < look.rows * tiles; job += gridDim.x) {
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
        uint32_t of_warp = lane < warps ? places[lane] : 0, up_to = scan_in_warp<ChosenCells>(of_warp);
        uint32_t own = state_of_lane(up_to, 31);
        uint32_t before = tiles > 1 ? look.before(row, tile, own) : 0;
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
Status write_compacted(Executor executor, const Predicate& chosen, const Write& write, Found* found, int64_t rows,
                       int64_t count) {
  LookBack<ChosenCells> look{nullptr, rows, ceil_div(count, compact_tile)};
  if (look.parts > 1 && !look.begin(executor)) return small_workspace;
  unsigned blocks = unsigned(std::min<int64_t>(rows * look.parts, 0x7fffffff));
  compact_tiles<<<blocks, compact_block, 0, executor.stream>>>(chosen, write, look, found, count);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
