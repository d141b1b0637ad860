// The suppress pattern's second kernel: a block for each batch goes through the tiles in order. One warp decides which
// elements of a tile are kept. All that it waits for is on the chip: the words of the band give what the last few tiles
// remove. Teams of warps take tiles in turn. A team copies the band of a tile several tiles before it is decided, and
// finds what the tile's kept elements remove of those after the band: it reads the words of kept elements and has the
// time of several tiles for that.
#pragma once

#include "copy_async_cuda.h"
#include "early_cuda.h"
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
  static constexpr int ahead = 2 * teams;  // tiles whose band is on its way, or here

  struct Decision {
    uint64_t kept;
    int position;  // of the tile's first kept element in the result; -1 when no tile follows
  };

  alignas(16) uint64_t band[ahead][suppress_band * suppress_tile];
  Decision decisions[teams];
  int kept;  // in all

  // A team waits for the decision on its tile; the deciding warp for the tile's band, and what the team's tile before
  // removes.
  static __device__ int decided(int team) { return 1 + team; }
  static __device__ int prepared(int team) { return 1 + teams + team; }
  static constexpr int together = 32 * (1 + warps);  // threads at either barrier
};

// 64 bits in halves, as ballots have them.
struct TileBits {
  uint32_t low, high;

  __device__ TileBits() : low(0), high(0) {}
  __device__ TileBits(uint32_t low, uint32_t high) : low(low), high(high) {}
  __device__ TileBits(uint64_t bits) : low(uint32_t(bits)), high(uint32_t(bits >> 32)) {}
  __device__ uint64_t bits() const { return uint64_t(high) << 32 | low; }
  __device__ TileBits operator|(TileBits other) const { return {low | other.low, high | other.high}; }
  __device__ TileBits operator&(TileBits other) const { return {low & other.low, high & other.high}; }
  __device__ TileBits operator~() const { return {~low, ~high}; }
};

// Of a tile's elements those that no kept one before suppresses. Each lane has the words of two elements, of those that
// suppress it. From all `open` ones on, what is kept is asked of what was kept: the first element is right at once, and
// each turn at least one more, until nothing changes. Only the right answer is its own answer, so it is asked for twice
// between two looks.
__device__ inline TileBits kept_of_tile(TileBits open, uint32_t first, TileBits second) {
  auto next = [&](TileBits kept) {
    uint32_t low = __ballot_sync(~0u, (first & kept.low) == 0);
    uint32_t high = __ballot_sync(~0u, ((second.low & kept.low) | (second.high & kept.high)) == 0);
    return TileBits(low, high) & open;
  };
  for (TileBits kept = open;;) {
    TileBits before = next(kept);
    kept = next(before);
    if (kept.low == before.low && kept.high == before.high) return kept;
  }
}

template <class Walk>
__device__ void decide_tiles(Walk& walk, const SuppressTiles& tiles, const uint64_t* removed, int size) {
  constexpr int teams = Walk::teams, more = suppress_band - 1;  // tiles of a band after its own
  int lane = threadIdx.x, all = int(tiles.tiles), tile = 0, team = 0, slot = 0, kept = 0;
  uint32_t own_first = 0;
  TileBits own_second, is_removed, later[more][2];
  TileBits pending[more];  // what this lane's kept elements remove of the next tiles; none of the last
  auto read = [&] {
    wait_at_barrier(Walk::prepared(team), Walk::together);
    is_removed = TileBits(removed[tile]);
    const uint64_t* band = walk.band[slot];
    own_first = uint32_t(band[lane]), own_second = band[lane + 32];
#pragma unroll
    for (int d = 0; d < more; ++d)
#pragma unroll
      for (int k = 0; k < 2; ++k) later[d][k] = band[(d + 1) * suppress_tile + lane + 32 * k];
  };
  auto say = [&](uint64_t elements, int position) {
    if (lane == 0) walk.decisions[team] = {elements, position};
    __syncwarp();
    arrive_at_barrier(Walk::decided(team), Walk::together);
    ++tile;
    team = team + 1 == teams ? 0 : team + 1;
    slot = slot + 1 == Walk::ahead ? 0 : slot + 1;
  };
  if (all > 0) read();
  TileBits near;  // what the last tiles remove of this one
  while (tile < all && kept < size) {
    TileBits open = ~(near | is_removed);
    TileBits elements = kept_of_tile(open, own_first, own_second);
    uint32_t keeps_first = 0 - (elements.low >> lane & 1), keeps_second = 0 - (elements.high >> lane & 1);
    auto removes = [&](int d) {
      return (later[d][0] & TileBits(keeps_first, keeps_first)) | (later[d][1] & TileBits(keeps_second, keeps_second));
    };
    TileBits next = pending[0] | removes(0);
    near = {or_of_warp(next.low), or_of_warp(next.high)};
    say(elements.bits(), kept);
    kept += __popc(elements.low) + __popc(elements.high);
#pragma unroll
    for (int d = 1; d < more; ++d) pending[d - 1] = pending[d] | removes(d);
    if (tile < all) read();
  }
  if (lane == 0) walk.kept = min(kept, size);
  // The teams that still wait for a tile, the first of which is prepared.
  for (int k = 0; k < teams && tile < all; ++k) {
    if (k > 0) wait_at_barrier(Walk::prepared(team), Walk::together);
    say(0, -1);
  }
}

// What the kept elements of every fifth tile remove of the tiles after the band, and their indices.
template <class Walk>
__device__ void follow_tiles(Walk& walk, const SuppressTiles& tiles, uint64_t* removed, int64_t batch, int64_t count,
                             int64_t size, const int32_t* order, int32_t* indices) {
  constexpr int own = suppress_tile / Walk::warps,
                some = Walk::warps > 1 ? own : 8;  // elements of a warp; that are read at once
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 1, team = warp / Walk::warps, of_team = warp % Walk::warps;
  // Of a tile that is `teams` after the one that was copied last.
  auto copy_band = [&](int64_t tile) {
    if (tile < tiles.tiles) {
      const uint64_t* from = tiles.band_of(batch, tile);
      uint64_t* to = walk.band[tile % Walk::ahead];
      for (int word = 2 * (of_team * 32 + lane); word < suppress_band * suppress_tile; word += 64 * Walk::warps)
        copy_async(to + word, from + word, 16);
    }
    __pipeline_commit();
  };
  auto prepare = [&] {
    __pipeline_wait_prior(1);
    __threadfence_block();
    __syncwarp();
    arrive_at_barrier(Walk::prepared(team), Walk::together);
  };
  for (int64_t tile = team; tile < Walk::ahead; tile += Walk::teams) copy_band(tile);
  if (team < tiles.tiles) prepare();
  for (int64_t tile = team; tile < tiles.tiles; tile += Walk::teams) {
    int32_t index[2] = {};
    if (of_team == 0)
#pragma unroll
      for (int k = 0; k < 2; ++k)
        if (int64_t element = tile * suppress_tile + lane + 32 * k; element < count) index[k] = order[element];
    wait_at_barrier(Walk::decided(team), Walk::together);
    auto decision = walk.decisions[team];
    if (decision.position < 0) break;
    copy_band(tile + Walk::ahead);
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
        auto* halves = reinterpret_cast<uint32_t*>(removed + at);
        if (uint32_t part = uint32_t(word)) atomicOr(halves, part);
        if (uint32_t part = uint32_t(word >> 32)) atomicOr(halves + 1, part);
      };
      if (later >= begin) remove(later, low);
      if (later + 1 < tiles.tiles) remove(later + 1, high);
    }
    if (tile + Walk::teams < tiles.tiles) prepare();
    if (of_team == 0)
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        int bit = lane + 32 * k;
        int64_t position = decision.position + __popcll(decision.kept & ((uint64_t(1) << bit) - 1));
        if ((decision.kept >> bit & 1) && position < size) indices[position] = index[k];
      }
  }
}

// `are_shared`: what is removed is in shared memory.
template <int team_warps, bool are_shared>
__global__ void __launch_bounds__(SuppressWalk<team_warps>::threads)
    suppress_walk(const int32_t* orders, int32_t* results, int32_t* kept, int64_t count, int64_t size,
                  SuppressTiles tiles) {
  using Walk = SuppressWalk<team_warps>;
  __shared__ Walk walk;
  extern __shared__ __align__(16) uint64_t removed_here[];
  wait_for_kernel_before();
  int64_t batch = blockIdx.x;
  uint64_t* removed = removed_here;
  if constexpr (!are_shared) removed = tiles.removed + batch * tiles.tiles;
  int32_t* indices = results + batch * size;
  // What is after the last element is removed.
  for (int64_t i = threadIdx.x; i < tiles.tiles; i += Walk::threads)
    removed[i] = count - i * suppress_tile < suppress_tile ? ~uint64_t(0) << (count - i * suppress_tile) : 0;
  __syncthreads();
  if (threadIdx.x < 32)
    decide_tiles(walk, tiles, removed, int(min(size, count)));
  else
    follow_tiles(walk, tiles, removed, batch, count, size, orders + batch * count, indices);
  __syncthreads();
  for (int64_t i = walk.kept + threadIdx.x; i < size; i += Walk::threads) indices[i] = -1;
  if (threadIdx.x == 0) kept[batch] = walk.kept;
}

}  // namespace internal
}  // namespace baracuda
