// A tile of a state scan on a CUDA grid: a team of 16 lanes has a state, and each lane of it K neighboring positions. A
// lane walks its positions from a state of 0, the team scans what that gave, and each lane walks again, from its true
// state. So exponentials are computed once, and only the scan waits for other lanes, once for K positions.
//
// A block of the gradient's kernel, and of that of few channels' results, has some channels that share B and C. It goes
// from tile to tile, in each from channel to channel. Its teams have the states in turn. What is of a position alone is
// computed by one thread, which leaves it in shared memory.
#pragma once

#include <algorithm>

#include "../kernels/selective_scan.h"
#include "executor.h"
#include "shared_memory_cuda.h"
#include "uniform_warp_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int selective_warps = 4, selective_block = 32 * selective_warps;
inline constexpr int selective_lanes = 16, selective_teams = selective_block / selective_lanes;

// How channels are cut into blocks, by shape alone.
struct SelectiveBlocks {
  int64_t tiles, channels;  // blocks that have one B and C; channels of a block

  SelectiveBlocks(int64_t tiles, int64_t channels) : tiles(tiles), channels(channels) {}
  // `at_once` is how many blocks a GPU of 132 multiprocessors has at once. There are as many, or a multiple of that
  // where each would have more than `most` channels, and no more, since each reads B and C. A block has `fewest`
  // channels where it leaves sums for them, of which there would be more than states.
  SelectiveBlocks(const SelectiveShape& shape, int64_t at_once, int64_t fewest) {
    const int64_t most = shape.states <= 16 ? 32 : shape.states <= 64 ? 16 : 8;
    int64_t rows = shape.batches * shape.channels, times = std::max<int64_t>(1, ceil_div(rows, most * at_once));
    channels = std::max(std::min(fewest, most), ceil_div(rows, times * at_once));
    channels = std::max<int64_t>(1, std::min(channels, shape.channels_each()));
    tiles = ceil_div(shape.channels_each(), channels);
  }
};

// Where a block's channels are: rows row ... row + count - 1.
struct SelectiveBlock {
  int64_t sequence, shared, row;
  int count;

  __device__ SelectiveBlock(const SelectiveShape& shape, const SelectiveBlocks& blocks) {
    int64_t each = shape.channels_each();
    shared = int64_t(blockIdx.x) / blocks.tiles;
    int64_t first = (int64_t(blockIdx.x) - shared * blocks.tiles) * blocks.channels;
    sequence = shared / shape.shared;
    row = sequence * shape.channels + (shared - sequence * shape.shared) * each + first;
    count = int(min(blocks.channels, each - first));
  }
};

// Which of a tile's `lanes` lanes the thread is: neighbors are `stride` threads apart, and those between have the same
// positions.
template <int lanes, int stride>
__device__ int lane_of_tile() {
  return threadIdx.x % 32 / stride % lanes;
}

// Values of a tile in shared memory: in vectors, so that lanes read theirs without conflicts of banks.
template <class Wide, int K, int lanes = selective_lanes, int stride = 1>
struct TileRow {
  static constexpr int positions = lanes * K, chunks = positions / selective_chunk;
  static constexpr int vector = K * int(sizeof(Wide)) < 16 ? K : 16 / int(sizeof(Wide));
  static constexpr int of_thread = positions > selective_block ? positions / selective_block : 1;

  static __device__ int slot(int p) { return p % K / vector * (lanes * vector) + p / K * vector + p % vector; }
  static __device__ void read(const Wide* row, Wide (&values)[K]) {
    int lane = lane_of_tile<lanes, stride>();
#pragma unroll
    for (int k = 0; k < K; k += vector) {
      Vector<Wide, vector> some = load<vector>(row + (k * lanes + lane * vector));
#pragma unroll
      for (int i = 0; i < vector; ++i) values[k + i] = some.lane[i];
    }
  }
  static __device__ void write(Wide* row, const Wide (&values)[K]) {
    int lane = lane_of_tile<lanes, stride>();
#pragma unroll
    for (int k = 0; k < K; k += vector) {
      Vector<Wide, vector> some;
#pragma unroll
      for (int i = 0; i < vector; ++i) some.lane[i] = values[k + i];
      *reinterpret_cast<Vector<Wide, vector>*>(row + (k * lanes + lane * vector)) = some;  // store() is for memory
    }
  }
  // The sum of what the teams of a warp have.
  static __device__ void write_sum(Wide* row, const Wide (&values)[K]) {
    bool is_first = threadIdx.x % 32 < selective_lanes;
    if (is_first) write(row, values);
    __syncwarp();
    if (is_first) return;
    Wide sum[K];
    read(row, sum);
#pragma unroll
    for (int k = 0; k < K; ++k) sum[k] += values[k];
    write(row, sum);
  }

  // From the slot of a position to that of the 32nd after it; how many such a lane of a warp has.
  static constexpr int step = 32 / K * vector, times = positions / 32;

  // The rows of B and C from position `begin`, 0 after the end. A warp has a row, whose positions are read as they are
  // stored.
  template <class T>
  static __device__ void stage(Wide* to_b, Wide* to_c, const T* b, const T* c, int rows, int64_t length,
                               int64_t begin) {
    const int lane = threadIdx.x % 32, left = int(min(int64_t(positions), length - begin)) - lane;
    b += begin + lane, c += begin + lane, to_b += slot(lane), to_c += slot(lane);
    for (int n = uniform_warp(); n < rows; n += selective_warps) {
      T of_b[times], of_c[times];
#pragma unroll
      for (int i = 0; i < times; ++i) {
        of_b[i] = 32 * i < left ? b[n * length + 32 * i] : T(Wide(0));
        of_c[i] = 32 * i < left ? c[n * length + 32 * i] : T(Wide(0));
      }
#pragma unroll
      for (int i = 0; i < times; ++i) {
        to_b[n * positions + i * step] = Wide(of_b[i]);
        to_c[n * positions + i * step] = Wide(of_c[i]);
      }
    }
  }
  // Writes rows to memory from position `begin`, and makes them 0.
  static __device__ void flush(Wide* from, Wide* x, int rows, int64_t length, int64_t begin) {
    const int lane = threadIdx.x % 32, left = int(min(int64_t(positions), length - begin)) - lane;
    from += slot(lane), x += begin + lane;
    for (int n = uniform_warp(); n < rows; n += selective_warps) {
#pragma unroll
      for (int i = 0; i < times; ++i) {
        if (32 * i < left) x[n * length + 32 * i] = from[n * positions + i * step];
        from[n * positions + i * step] = 0;
      }
    }
  }
};

// A lane's positions of a tile.
template <class Wide, int K, int lanes = selective_lanes, int stride = 1>
struct TileLane {
  using Row = TileRow<Wide, K, lanes, stride>;
  static constexpr int last = lanes - 1, width = lanes * stride;
  int lane, inside;  // how many of its positions are before the end
  bool is_plain;     // whether all of the tile are, and no segment starts in it
  uint32_t starts;
  int64_t first;
  int before, after;  // how many lanes before and after may take part in its states
  Wide steps[K], inputs[K], total;

  template <class T>
  __device__ TileLane(const SelectiveScan<T>& scan, int64_t sequence, int64_t begin) {
    lane = lane_of_tile<lanes, stride>(), first = begin + lane * K;
    const int64_t length = scan.shape.length;
    inside = int(max(int64_t(0), min(int64_t(K), length - first)));
    starts = 0;
    if (scan.starts) {
#pragma unroll
      for (int k = 0; k < K; ++k) starts |= uint32_t(k < inside && scan.is_start(sequence, first + k)) << k;
    }
    // Those of one tile: all that a warp has are of the same positions.
    uint32_t has = __ballot_sync(~0u, starts != 0) & (~0u >> (32 - width));
    uint32_t until = has & (~0u >> (31 - lane * stride)), from = has >> lane * stride;
    before = until ? lane - (31 - __clz(int(until))) / stride : lane;
    after = from ? (__ffs(int(from)) - 1) / stride : last - lane;
    is_plain = has == 0 && begin + Row::positions <= length;
  }
  __device__ bool is_start(int k) const { return starts >> k & 1; }

  __device__ void read_steps(const Wide* steps_row, const Wide* inputs_row) {
    Row::read(steps_row, steps);
    Row::read(inputs_row, inputs);
    total = 0;
#pragma unroll
    for (int k = 0; k < K; ++k) total += steps[k];
  }
  // How a state decays at each position, and over all of them. After the end nothing does, whatever its rate.
  template <bool is_plain>
  __device__ void factors(Wide rate, Wide (&each)[K], Wide& all) const {
#pragma unroll
    for (int k = 0; k < K; ++k) each[k] = Decay<Wide>::factor(steps[k] * rate);
    all = Decay<Wide>::factor(total * rate);
    if constexpr (!is_plain) {
#pragma unroll
      for (int k = 0; k < K; ++k)
        if (k >= inside) each[k] = 1;
      if (inside == 0) all = 1;
    }
  }
  // The state after position k.
  template <bool is_plain>
  __device__ Wide next(int k, Wide factor, Wide h, Wide added) const {
    return !is_plain && is_start(k) ? added : factor * h + added;
  }

  // The values of the lanes `distance` before and after, of any where there is none.
  static __device__ Wide from_before(Wide value, int distance) {
    return __shfl_up_sync(~0u, value, distance * stride, width);
  }
  static __device__ Wide from_after(Wide value, int distance) {
    return __shfl_down_sync(~0u, value, distance * stride, width);
  }
  // States after each lane's positions, from those that they would be of 0 and how they decay: in `across` neighboring
  // lanes, of the last of which nobody asks where that is not the tile's.
  template <int across, int J>
  __device__ void scan_forward(Wide (&h)[J], Wide (&all)[J]) const {
    int most = min(before, lane % across);
#pragma unroll
    for (int distance = 1; distance < (across == lanes ? across : across - 1); distance *= 2) {
#pragma unroll
      for (int j = 0; j < J; ++j) {
        Wide other = from_before(h[j], distance), decay = from_before(all[j], distance);
        if (distance <= most) h[j] += all[j] * other, all[j] *= decay;
      }
    }
  }
  // The same from the other end, of the states' cotangents.
  template <int J>
  __device__ void scan_backward(Wide (&h)[J], Wide (&all)[J]) const {
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) {
#pragma unroll
      for (int j = 0; j < J; ++j) {
        Wide other = from_after(h[j], distance), decay = from_after(all[j], distance);
        if (distance <= after) h[j] += all[j] * other, all[j] *= decay;
      }
    }
  }
};

// A thread's positions of a tile, a block's threads apart: what is of a position alone.
template <class Wide, int K>
struct ThreadPositions {
  using Row = TileRow<Wide, K>;
  static constexpr int count = Row::of_thread;
  // From the slot of a position to that of the next one of the thread.
  static constexpr int step = selective_block / K * Row::vector;
  bool is_there[count];  // before the end
  int slot;
  int64_t offset;  // of the first in an array of the block's row

  __device__ ThreadPositions(int64_t row, int64_t length, int64_t begin) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      int p = int(threadIdx.x) + i * selective_block;
      is_there[i] = p < Row::positions && begin + p < length;
    }
    slot = Row::slot(int(threadIdx.x) % Row::positions), offset = row * length + begin + threadIdx.x;
  }
  static __device__ bool is_in_tile() { return Row::positions >= selective_block || threadIdx.x < Row::positions; }
  template <class T>
  __device__ void load(const T* x, T (&values)[count]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = is_there[i] ? x[offset + i * selective_block] : T(Wide(0));
  }
  __device__ void write(Wide* row, int i, Wide value) const {
    if (is_in_tile()) row[slot + i * step] = value;
  }
  // The sum over warps, whose rows are `apart`.
  __device__ Wide sum(const Wide* rows, int i, int apart) const {
    Wide total = 0;
#pragma unroll
    for (int w = 0; w < selective_warps; ++w) total += rows[w * apart + slot + i * step];
    return total;
  }
};

// B, C or the sums of their gradients, [states][positions] of a tile: in shared memory, or where there is no room for
// them in memory, [states, length].
template <bool is_near, class T, class Wide, int K>
struct TileStates {
  T* x;
  int64_t length;

  __device__ void read(int n, const TileLane<Wide, K>& lane, Wide (&values)[K]) const {
    if constexpr (is_near) {
      TileRow<Wide, K>::read(x + n * TileRow<Wide, K>::positions, values);
    } else {
#pragma unroll
      for (int k = 0; k < K; ++k) values[k] = k < lane.inside ? Wide(x[n * length + lane.first + k]) : Wide(0);
    }
  }
  __device__ void write(int n, const TileLane<Wide, K>& lane, const Wide (&values)[K]) const {
    if constexpr (is_near) {
      TileRow<Wide, K>::write(x + n * TileRow<Wide, K>::positions, values);
    } else {
#pragma unroll
      for (int k = 0; k < K; ++k)
        if (k < lane.inside) x[n * length + lane.first + k] = values[k];
    }
  }
};

// Runs body(a state of the team, whether it has one, the number of states, whether all is plain): that and the ones
// `selective_teams` after it, at most J, so that the scan of one is computed while another waits. All is plain where
// the tile is and both teams of the warp have states; without a state a team goes along with the last one.
template <int J, class Body>
__device__ void each_state(int states, bool is_plain, const Body& body) {
  constexpr int teams = 32 / selective_lanes;
  const int team = threadIdx.x % 32 / selective_lanes;
  int first = uniform_warp() * teams;  // of the warp
  if (is_plain) {
    for (; first + (J - 1) * selective_teams + teams <= states; first += J * selective_teams)
      body(first + team, true, std::integral_constant<int, J>{}, std::true_type{});
    if (J > 1)
      for (; first + teams <= states; first += selective_teams)
        body(first + team, true, std::integral_constant<int, 1>{}, std::true_type{});
  }
  for (; first < states; first += selective_teams)
    body(min(first + team, states - 1), first + team < states, std::integral_constant<int, 1>{}, std::false_type{});
}

inline Status check_grid(int64_t blocks) {
  return {blocks < (int64_t(1) << 31) ? nullptr : "the grid would have more than 2^31 - 1 blocks"};
}

// What all GPUs that are built for have in a block.
inline constexpr int64_t selective_memory = 99 << 10;

}  // namespace internal
}  // namespace baracuda
