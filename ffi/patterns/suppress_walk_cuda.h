// The suppress pattern's second kernel: a block for each batch goes through the tiles in order. One warp decides which
// elements of a tile are kept. What it waits for is on the chip: the words of the band, read several tiles ahead, give
// what the last few tiles remove. What older tiles remove is found by teams of warps, which take tiles in turn: a team
// reads the words of a tile's kept elements and has the time of several tiles for that.
#pragma once

#include "copy_async_cuda.h"
#include "named_barrier_cuda.h"
#include "or_of_warp_cuda.h"
#include "suppress_words_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int suppress_teams =
    suppress_band;  // what tile t removes, beyond the band, is asked for by tile t + 5

template <int team_warps>
struct SuppressWalk {
  static constexpr int teams = suppress_teams, warps = team_warps, threads = 32 * (1 + teams * warps);
  static constexpr int ahead = 8;  // tiles whose band is on its way, or here

  struct Decision {
    uint64_t kept;
    int64_t position;  // of the tile's first kept element in the result; -1 when no tile follows
  };

  alignas(16) uint64_t band[ahead][suppress_band * suppress_tile];
  Decision decisions[teams];
  int64_t kept;  // in all

  // A team waits for the decision on its tile; the deciding warp for what the team's tile before removes.
  static __device__ int decided(int team) { return 1 + team; }
  static __device__ int removed(int team) { return 1 + teams + team; }
  static constexpr int together = 32 * (1 + warps);  // threads at either barrier
};

// Of a tile's elements those that no kept one before suppresses. Each lane has the words of two elements, of those that
// suppress it. From all `open` ones on, what is kept is asked of what was kept: the first element is right at once, and
// each turn at least one more, until nothing changes. Only the right answer is its own answer.
__device__ inline uint64_t kept_of_tile(uint64_t open, uint64_t first, uint64_t second) {
  uint32_t open_low = uint32_t(open), open_high = uint32_t(open >> 32), low = open_low, high = open_high;
  uint32_t of_first = uint32_t(first), of_second_low = uint32_t(second), of_second_high = uint32_t(second >> 32);
  while (true) {
    uint32_t now_low = __ballot_sync(~0u, (of_first & low) == 0) & open_low;
    uint32_t now_high = __ballot_sync(~0u, ((of_second_low & low) | (of_second_high & high)) == 0) & open_high;
    if (now_low == low && now_high == high) break;
    low = now_low, high = now_high;
  }
  return uint64_t(high) << 32 | low;
}

template <class Walk>
__device__ void decide_tiles(Walk& walk, const SuppressTiles& tiles, const uint32_t* removed, int64_t batch,
                             int64_t count, int64_t size) {
  constexpr int teams = Walk::teams, ahead = Walk::ahead;
  int lane = threadIdx.x;
  constexpr int words = suppress_band * suppress_tile;
  static_assert(words % 64 == 0, "each lane copies as many vectors of two words");
  auto fetch = [&](int64_t tile) {
    if (tile < tiles.tiles) {
      const uint64_t* from = tiles.band_of(batch, tile) + 2 * lane;
      uint64_t* to = walk.band[tile % ahead] + 2 * lane;
#pragma unroll
      for (int word = 0; word < words; word += 64) copy_async(to + word, from + word, 16);
    }
    __pipeline_commit();
  };
  for (int tile = 0; tile < ahead - 1; ++tile) fetch(tile);
  uint64_t pending[suppress_band - 1] = {};  // what this lane's kept elements remove of the tile after next, and so on
  uint64_t near = 0;                         // what the last tiles remove of this one
  int64_t kept = 0, tile = 0;
  int team = 0;
  auto say = [&](uint64_t elements, int64_t position) {
    if (lane == 0) walk.decisions[team] = {elements, position};
    __syncwarp();
    arrive_at_barrier(Walk::decided(team), Walk::together);
  };
  auto next = [&] { ++tile, team = team + 1 == teams ? 0 : team + 1; };
  for (; tile < tiles.tiles && kept < size; next()) {
    __syncwarp();  // all have read the band that is overwritten
    fetch(tile + ahead - 1);
    __pipeline_wait_prior(ahead - 1);
    __syncwarp();
    const uint64_t* band = walk.band[tile % ahead];
    uint64_t first = band[lane], second = band[lane + 32];
    uint64_t next_first = band[suppress_tile + lane], next_second = band[suppress_tile + lane + 32];
    uint64_t open = ~near;
    if (tile >= teams) {
      wait_at_barrier(Walk::removed(team), Walk::together);
      open &= ~reinterpret_cast<const volatile uint64_t*>(removed)[tile];
    }
    int64_t there = count - tile * suppress_tile;  // elements of the tile
    if (there < suppress_tile) open &= (uint64_t(1) << there) - 1;
    uint64_t elements = kept_of_tile(open, first, second);
    say(elements, kept);
    kept += __popcll(elements);
    uint64_t keeps_first = 0 - (elements >> lane & 1), keeps_second = 0 - (elements >> (lane + 32) & 1);
    near = or_of_warp(pending[0] | (next_first & keeps_first) | (next_second & keeps_second));
#pragma unroll
    for (int d = 2; d < suppress_band; ++d)
      pending[d - 2] = pending[d - 1] | (band[d * suppress_tile + lane] & keeps_first) |
                       (band[d * suppress_tile + lane + 32] & keeps_second);
  }
  // The teams that still wait for a tile.
  for (int k = 0; k < teams && tile < tiles.tiles; ++k, next()) {
    if (tile >= teams) wait_at_barrier(Walk::removed(team), Walk::together);
    say(0, -1);
  }
  if (lane == 0) walk.kept = min(kept, size);
}

// What the kept elements of every fifth tile remove of the tiles after the band, and their indices.
template <class Walk>
__device__ void follow_tiles(Walk& walk, const SuppressTiles& tiles, uint32_t* removed, int64_t batch, int64_t count,
                             int64_t size, const int32_t* order, int32_t* indices) {
  constexpr int own = suppress_tile / Walk::warps,
                some = own < 8 ? own : 8;  // elements of a warp; that are read at once
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 1, team = warp / Walk::warps, of_team = warp % Walk::warps;
  for (int64_t tile = team; tile < tiles.tiles; tile += Walk::teams) {
    int32_t index[2] = {};
    if (of_team == 0)
#pragma unroll
      for (int k = 0; k < 2; ++k)
        if (int64_t element = tile * suppress_tile + lane + 32 * k; element < count) index[k] = order[element];
    wait_at_barrier(Walk::decided(team), Walk::together);
    auto decision = walk.decisions[team];
    if (decision.position < 0) break;
    // Each lane has two neighboring tiles of 64. The first may be the last of the band, whose words are not there.
    int64_t begin = tile + suppress_band;
    const uint64_t* rows = tiles.rows_of(batch, tile) + of_team * own * tiles.stride;
    for (int64_t later = begin / 2 * 2 + 2 * lane; begin < tiles.tiles && later < tiles.tiles; later += 64) {
      uint64_t low = 0, high = 0;
#pragma unroll 1
      for (int first = 0; first < own; first += some) {
        uint32_t kept = uint32_t(decision.kept >> (of_team * own + first));
        Vector<uint64_t, 2> words[some];
#pragma unroll
        for (int i = 0; i < some; ++i) {
          words[i] = {};
          if (kept >> i & 1) words[i] = load<2>(rows + (first + i) * tiles.stride + later);
        }
#pragma unroll
        for (int i = 0; i < some; ++i) low |= words[i].lane[0], high |= words[i].lane[1];
      }
      auto remove = [&](int64_t at, uint64_t word) {
        if (uint32_t part = uint32_t(word)) atomicOr(removed + 2 * at, part);
        if (uint32_t part = uint32_t(word >> 32)) atomicOr(removed + 2 * at + 1, part);
      };
      if (later >= begin) remove(later, low);
      if (later + 1 < tiles.tiles) remove(later + 1, high);
    }
    __threadfence_block();
    __syncwarp();
    if (tile + Walk::teams < tiles.tiles) arrive_at_barrier(Walk::removed(team), Walk::together);
    if (of_team == 0)
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        int bit = lane + 32 * k;
        int64_t position = decision.position + __popcll(decision.kept & ((uint64_t(1) << bit) - 1));
        if ((decision.kept >> bit & 1) && position < size) indices[position] = index[k];
      }
  }
}

template <int team_warps>
__global__ void __launch_bounds__(SuppressWalk<team_warps>::threads)
    suppress_walk(const int32_t* orders, int32_t* results, int32_t* kept, int64_t count, int64_t size,
                  SuppressTiles tiles) {
  using Walk = SuppressWalk<team_warps>;
  __shared__ Walk walk;
  extern __shared__ __align__(16) uint32_t removed_here[];
  int64_t batch = blockIdx.x;
  uint32_t* removed = tiles.removed == nullptr ? removed_here : tiles.removed + batch * 2 * tiles.tiles;
  int32_t* indices = results + batch * size;
  for (int64_t i = threadIdx.x; i < 2 * tiles.tiles; i += Walk::threads) removed[i] = 0;
  __syncthreads();
  if (threadIdx.x < 32)
    decide_tiles(walk, tiles, removed, batch, count, size);
  else
    follow_tiles(walk, tiles, removed, batch, count, size, orders + batch * count, indices);
  __syncthreads();
  for (int64_t i = walk.kept + threadIdx.x; i < size; i += Walk::threads) indices[i] = -1;
  if (threadIdx.x == 0) kept[batch] = int32_t(walk.kept);
}

}  // namespace internal
}  // namespace baracuda
