// Which elements of rows are chosen, and how many of a row's are before each. Elements are read once: by a warp for
// each row where rows are short, by a block for each where they are a few tiles, else by tiles that look back.
#pragma once

#include <algorithm>

#include "look_back_cuda.h"
#include "row_loads_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int compact_block = 256, compact_warps = compact_block / 32;

// A predicate may know of rows without any chosen element.
template <class Predicate>
__device__ bool is_idle(const Predicate& chosen, int64_t row) {
  if constexpr (requires { chosen.idle(row); }) return chosen.idle(row);
  return false;
}

// Called by all threads of the warp or the block that has a whole row, after its last chosen element: a writer may have
// more to write.
template <class Write>
__device__ void end_row(const Write& write, int64_t row, uint32_t found, int thread, int threads) {
  if constexpr (requires { write.end(row, found, thread, threads); }) write.end(row, found, thread, threads);
}

// How many chosen elements there are.
struct ChosenElements {
  using State = uint32_t;
  static __device__ State none() { return 0; }
  static __device__ State join(State a, State b) { return a + b; }
};

// A row by parts, which a warp reads at once, by so many loads of a lane's, of 32 elements at most.
template <class Key, int most_loads = 8>
struct WarpParts {
  using Loads = RowLoads<32, Key>;
  static constexpr int V = int(Loads::elements), loads = std::min(32 / V, most_loads),
                       elements = loads * int(Loads::chunk);
  Loads row;

  // How many there are, wherever in memory the row begins.
  static int64_t parts(int64_t count) { return ceil_div(count + V - 1, elements); }

  // A bit for each element that the lane reads, load by load: whether predicate(element, the one before, is it the
  // first).
  template <class Predicate>
  __device__ uint32_t chosen(const Predicate& predicate, uint32_t part) const {
    uint32_t numbers[loads], lane = threadIdx.x % 32, begin = part * elements;
    typename Loads::Load some[loads]{};
#pragma unroll
    for (int k = 0; k < loads; ++k) numbers[k] = part * loads + k;
    row.load_chunks(numbers, some);
    bool whole = begin >= row.before && begin + elements <= row.length;
    // The last lane hands on the last element of the load before, to the first.
    Key last = lane == 31 && begin > row.before && begin <= row.length ? row.from[begin - 1] : Key(0);
    uint32_t bits = 0;
#pragma unroll
    for (int k = 0; k < loads; ++k) {
      Key own = some[k].lane[V - 1], before = __shfl_sync(~0u, lane == 31 ? last : own, (lane + 31) % 32);
      last = own;
      uint32_t position = row.position(row.offset(numbers[k])), keep = 0;
#pragma unroll
      for (int j = 0; j < V; ++j) {
        bool is = predicate(some[k].lane[j], j ? some[k].lane[j - (j > 0)] : before, position + j == 0);
        keep |= uint32_t(is) << j;
      }
      bits |= (whole ? keep : keep & row.mask(position)) << k * V;
    }
    return bits;
  }

  // Calls write(how many of the part's chosen elements are before, position) for each of them. They are put in order in
  // shared memory, so that neighbors are written together.
  template <class Write>
  __device__ void each(uint32_t bits, uint32_t many, uint32_t part, uint16_t (&ordered)[elements],
                       const Write& write) const {
    uint32_t before = 0, lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < loads; ++k) {
      uint32_t keep = bits >> k * V & Loads::whole, own = __popc(keep);
      if (!__any_sync(~0u, keep)) continue;
      uint32_t up_to = scan_in_warp<ChosenElements>(own), at = before + up_to - own;
#pragma unroll
      for (int j = 0; j < V; ++j)
        if (keep >> j & 1) ordered[at++] = uint16_t((k * 32 + lane) * V + j);
      before += state_of_lane(up_to, 31);
    }
    __syncwarp();
    uint32_t first = row.position(part * elements);
    for (uint32_t k = lane; k < many; k += 32) write(k, first + ordered[k]);
    __syncwarp();
  }
};

template <class Key>
struct TileMemory {
  uint32_t positions[compact_warps];
  uint16_t ordered[compact_warps][WarpParts<Key>::elements];
};

// Calls write(row, how many chosen elements of the row precede it, element) for each chosen element of a tile, by a
// block. The first warp calls before(how many the tile has), which returns how many of the row precede the tile.
template <class Key, class Predicate, class Write, class Before>
__device__ void compact_tile(TileMemory<Key>& memory, const WarpParts<Key>& parts, const Predicate& chosen,
                             const Write& write, int64_t row, int64_t tile, const Before& before) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t part = uint32_t(tile) * compact_warps + warp;
  uint32_t bits = parts.chosen(chosen, part), mine = __reduce_add_sync(~0u, __popc(bits));
  if (lane == 0) memory.positions[warp] = mine;
  __syncthreads();
  if (warp == 0) {
    uint32_t of_warp = lane < compact_warps ? memory.positions[lane] : 0, up_to = scan_in_warp<ChosenElements>(of_warp);
    uint32_t first = before(state_of_lane(up_to, 31));
    if (lane < compact_warps) memory.positions[lane] = first + up_to - of_warp;
  }
  __syncthreads();
  uint32_t position = memory.positions[warp];
  parts.each(bits, mine, part, memory.ordered[warp], [&](uint32_t k, uint32_t i) { write(row, position + k, i); });
  __syncthreads();
}

// Rows of many tiles, a block for each tile. `found` gets how many chosen elements there are.
template <class Key, class Predicate, class Write, class Found>
__global__ void __launch_bounds__(compact_block, 6)
    compact_tiles(const Key* x, Predicate chosen, Write write, LookBack<ChosenElements> look, Found* found,
                  int64_t count) {
  __shared__ TileMemory<Key> memory;
  int64_t tiles = look.parts;
  for (int64_t job = blockIdx.x; job < look.rows * tiles; job += gridDim.x) {
    int64_t row = job / tiles, tile = job - row * tiles;
    if (is_idle(chosen, row)) continue;
    WarpParts<Key> parts{{x + row * count, 0, uint32_t(count)}};
    compact_tile(memory, parts, chosen, write, row, tile, [&](uint32_t own) {
      uint32_t before = look.before(row, tile, own);
      if (threadIdx.x == 0 && tile == tiles - 1 && found) found[row] = Found(before + own);
      return before;
    });
  }
}

// Rows of a few tiles, a block for each row.
template <class Key, class Predicate, class Write, class Found>
__global__ void __launch_bounds__(compact_block, 6)
    compact_by_blocks(const Key* x, Predicate chosen, Write write, Found* found, int64_t rows, int64_t tiles,
                      int64_t count) {
  __shared__ TileMemory<Key> memory;
  __shared__ uint32_t found_here;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    if (is_idle(chosen, row)) continue;
    WarpParts<Key> parts{{x + row * count, 0, uint32_t(count)}};
    uint32_t so_far = 0;  // known to the first warp
    for (int64_t tile = 0; tile < tiles; ++tile)
      compact_tile(memory, parts, chosen, write, row, tile, [&](uint32_t own) {
        uint32_t before = so_far;
        so_far += own;
        return before;
      });
    if (threadIdx.x == 0) {
      found_here = so_far;
      if (found) found[row] = Found(so_far);
    }
    __syncthreads();
    end_row(write, row, found_here, threadIdx.x, compact_block);
  }
}

// Short rows, a warp for each row.
template <class Parts, class Key, class Predicate, class Write, class Found>
__global__ void __launch_bounds__(compact_block)
    compact_short(const Key* x, Predicate chosen, Write write, Found* found, int64_t rows, int64_t count) {
  __shared__ uint16_t ordered[compact_warps][Parts::elements];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t row = int64_t(blockIdx.x) * compact_warps + warp; row < rows;
       row += int64_t(gridDim.x) * compact_warps) {
    if (is_idle(chosen, row)) continue;
    Parts parts{{x + row * count, 0, uint32_t(count)}};
    uint32_t position = 0;
    for (uint32_t part = 0; part * Parts::elements < parts.row.length; ++part) {
      uint32_t bits = parts.chosen(chosen, part), mine = __reduce_add_sync(~0u, __popc(bits));
      parts.each(bits, mine, part, ordered[warp], [&](uint32_t k, uint32_t i) { write(row, position + k, i); });
      position += mine;
    }
    if (lane == 0 && found) found[row] = Found(position);
    end_row(write, row, position, lane, 32);
  }
}

// How rows are cut into tiles, and whether a warp or a block has a whole row.
template <class Key>
struct CompactCut {
  static constexpr int64_t many_rows = 4096, few_tiles = 4;
  int64_t tiles;
  bool by_warps, by_blocks;

  CompactCut(int64_t rows, int64_t count) {
    int64_t parts = WarpParts<Key>::parts(count);
    tiles = ceil_div(parts, compact_warps);
    by_warps = parts == 1 || (tiles == 1 && rows >= many_rows);
    by_blocks = !by_warps && tiles <= few_tiles;
  }
  bool is_whole() const { return by_warps || by_blocks; }
};

inline constexpr int64_t most_compact_blocks = 0x7fffffff;

// By tiles that look back: for rows of many tiles, and correct for any with a element.
template <class Key, class Predicate, class Write, class Found>
Status compact_long_rows(Executor executor, const Key* x, const Predicate& chosen, const Write& write, Found* found,
                         int64_t rows, int64_t count) {
  int64_t tiles = CompactCut<Key>(rows, count).tiles;
  LookBack<ChosenElements> look{nullptr, rows, tiles};
  if (!look.begin(executor)) return small_workspace;
  unsigned blocks = unsigned(std::min(rows * tiles, most_compact_blocks));
  compact_tiles<<<blocks, compact_block, 0, executor.stream>>>(x, chosen, write, look, found, count);
  return launched();
}

template <class Key, class Predicate, class Write, class Found>
Status write_compacted(Executor executor, const Key* x, const Predicate& chosen, const Write& write, Found* found,
                       int64_t rows, int64_t count) {
  using FewElements = WarpParts<Key, 2>;
  CompactCut<Key> cut(rows, count);
  if (cut.by_warps) {
    unsigned blocks = unsigned(std::min(ceil_div(rows, compact_warps), most_compact_blocks));
    auto kernel = count <= FewElements::elements ? compact_short<FewElements, Key, Predicate, Write, Found>
                                                 : compact_short<WarpParts<Key>, Key, Predicate, Write, Found>;
    kernel<<<blocks, compact_block, 0, executor.stream>>>(x, chosen, write, found, rows, count);
    return launched();
  }
  if (cut.by_blocks) {
    unsigned blocks = unsigned(std::min(rows, most_compact_blocks));
    compact_by_blocks<<<blocks, compact_block, 0, executor.stream>>>(x, chosen, write, found, rows, cut.tiles, count);
    return launched();
  }
  return compact_long_rows(executor, x, chosen, write, found, rows, count);
}

}  // namespace internal
}  // namespace baracuda
