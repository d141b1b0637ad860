// Elements that are combined by their positions in rows, on a CUDA grid.
//
// A block has the states of some rows, or of a part of a long one, in shared memory and goes through their items in
// their order, a tile at a time. Of those of a tile with one position the first is combined, then the next, and so on:
// each state has the order of its items. Which one is next is found by the maximum of what they write into one of the
// block's slots, where positions that share a slot wait for each other. After the first turn few wait, which go into a
// list, where they take further turns. Where many have one position, what waits is combined by warps, each of which has
// every so many of the positions, and takes 32 items at a time: a lane has the state of its item's position, and goes
// through all of them.
//
// What gives each item something goes through the items again, which are in a cache by then. Each part of a row gives
// to its own items, and the first one to those that are dropped.
#pragma once

#include <algorithm>

#include "../kernels/scatter.h"
#include "device_cuda.h"
#include "divisor.h"
#include "shared_memory_cuda.h"
#include "sort.h"

namespace baracuda {
namespace internal {

inline constexpr int scatter_turns = 12;  // of what is listed

// What a block combines: so many whole rows, or one of so many parts of a row.
struct ScatterGrid {
  int64_t tasks;  // of all blocks
  int rows, parts, length;
  int slots;  // a power of two
  Divisor<int32_t> items;
};

inline constexpr uint32_t no_position = ~0u;

// The items of a block's rows or row, of which it has positions [begin, begin + limit), all below 2^31.
template <class T>
struct ScatterItems {
  const ScatterShape& shape;
  const ScatterGrid& grid;
  const int32_t* index;
  const T* values;
  uint32_t begin, limit;
  int64_t first;  // of the tile

  __device__ int32_t row(uint32_t i) const { return grid.rows > 1 ? grid.items.quotient(int32_t(first + i)) : 0; }
  __device__ int32_t in_row(uint32_t i) const { return int32_t(first + i) - row(i) * int32_t(shape.items); }
  __device__ uint32_t offset(int32_t to, uint32_t i) const {
    uint32_t offset = uint32_t(to < 0 ? to + shape.added : to) - begin;
    return offset < limit ? offset + uint32_t(row(i)) * limit : no_position;
  }
};

// Without a branch.
__device__ inline void atomic_max_if(bool is_so, uint32_t* at, uint32_t value) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p red.shared.max.u32 [%1], %2; }" ::"r"(uint32_t(is_so)),
               "r"(uint32_t(__cvta_generic_to_shared(at))), "r"(value)
               : "memory");
}

template <class F, int threads, int ahead>
struct ScatterBlock {
  using T = typename F::Element;
  using State = typename F::State;
  static constexpr int tile = ahead * threads, listed = 2;  // of the list, by each thread
  static constexpr uint32_t most_rounds = ~0u / tile - scatter_turns - 1;

  struct Shared {
    uint32_t to[listed * threads], ranks[listed * threads], count;
    T values[listed * threads];
  };
  // Of slots, or else of items: which have as many.
  static constexpr int64_t least_slots = tile;

  const F& f;
  Shared& shared;
  State* states;
  uint32_t* owners;
  uint32_t slot_mask;
  uint32_t round = most_rounds;

  // The earlier an item is in the tile, the larger what it writes, which is larger than all of earlier rounds.
  __device__ uint32_t key(uint32_t rank) const { return round * tile + (tile - 1 - rank); }

  // A tile of so many items, or as many as it has.
  __device__ void combine(const ScatterItems<T>& items, int64_t count) {
    uint32_t to[ahead], pending = 0, thread = threadIdx.x;
    T values[ahead];
    const int32_t* index = items.index + items.first + thread;
    const T* from = items.values + items.first + thread;
    int left = int(min(count, int64_t(tile))) - int(thread);
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (k * threads < left) to[k] = uint32_t(index[k * threads]), values[k] = from[k * threads];
    if (round >= most_rounds) {
      for (uint32_t slot = thread; slot <= slot_mask; slot += threads) owners[slot] = 0;
      round = 0;
      __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      to[k] = k * threads < left ? items.offset(int32_t(to[k]), k * threads + thread) : no_position;
      if (to[k] != no_position) pending |= 1u << k;
    }
    ++round;
    uint32_t mine = key(thread), owner[ahead], next = 0;
#pragma unroll
    for (int k = 0; k < ahead; ++k) atomic_max_if(pending >> k & 1, owners + (to[k] & slot_mask), mine - k * threads);
    if (thread == 0) shared.count = 0;
    __syncthreads();
    // Without branches, so that all loads are on their way together.
#pragma unroll
    for (int k = 0; k < ahead; ++k) owner[k] = owners[to[k] & slot_mask];
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (to[k] != no_position && owner[k] == mine - k * threads) next |= 1u << k;
    State some[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      some[k] = State{};
      if (next >> k & 1) some[k] = states[to[k]];
    }
#pragma unroll
    for (int k = 0; k < ahead; ++k) f.combine(some[k], values[k], items.in_row(k * threads + thread));
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (next >> k & 1) states[to[k]] = some[k];
    pending &= ~next;
    if (!__syncthreads_or(int(pending))) return;
    if (pending) {
      uint32_t at = atomicAdd(&shared.count, uint32_t(__popc(pending)));
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (pending >> k & 1) {
          if (at < listed * threads)
            shared.to[at] = to[k], shared.ranks[at] = k * threads + thread, shared.values[at] = values[k];
          ++at;
        }
    }
    __syncthreads();
    if (shared.count <= listed * threads) return combine_listed(items);
    __syncthreads();
    // The slots have positions of items now.
#pragma unroll
    for (int k = 0; k < ahead; ++k) owners[k * threads + thread] = pending >> k & 1 ? to[k] : no_position;
    combine_waiting(items);
  }

  __device__ void combine_listed(const ScatterItems<T>& items) {
    uint32_t thread = threadIdx.x, pending = 0, to[listed], ranks[listed];
    T values[listed];
#pragma unroll
    for (int k = 0; k < listed; ++k)
      if (uint32_t at = k * threads + thread; at < shared.count) {
        pending |= 1u << k;
        to[k] = shared.to[at], ranks[k] = shared.ranks[at], values[k] = shared.values[at];
      }
    for (int turn = 0; turn < scatter_turns; ++turn) {
      ++round;
#pragma unroll
      for (int k = 0; k < listed; ++k)
        if (pending >> k & 1) atomicMax(owners + (to[k] & slot_mask), key(ranks[k]));
      __syncthreads();
#pragma unroll
      for (int k = 0; k < listed; ++k)
        if (pending >> k & 1 && owners[to[k] & slot_mask] == key(ranks[k])) {
          f.combine(states[to[k]], values[k], items.in_row(ranks[k]));
          pending &= ~(1u << k);
        }
      if (!__syncthreads_or(int(pending))) return;
    }
    for (int i = thread; i < tile; i += threads) owners[i] = no_position;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < listed; ++k)
      if (pending >> k & 1) owners[ranks[k]] = to[k];
    combine_waiting(items);
  }

  // Items whose positions are in the slots, which are cleared before the next tile. What a warp has of them goes
  // through its part of the list.
  __device__ void combine_waiting(const ScatterItems<T>& items) {
    constexpr uint32_t all = ~0u, warps = threads / 32;
    constexpr int words = tile / 32, some = 4;
    static_assert(words % some == 0 && listed >= 2);
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = warp * 64, queued = 0;
    const T* from = items.values + items.first;
    __syncthreads();
    for (int word = 0; word < words; word += some) {
      uint32_t to[some];
      T values[some];
#pragma unroll
      for (int k = 0; k < some; ++k) to[k] = owners[(word + k) * 32 + lane];
#pragma unroll
      for (int k = 0; k < some; ++k) {
        if (to[k] % warps != warp) to[k] = no_position;
        if (to[k] != no_position) values[k] = from[(word + k) * 32 + lane];
      }
#pragma unroll
      for (int k = 0; k < some; ++k) {
        uint32_t here = __ballot_sync(all, to[k] != no_position), at = own + queued + __popc(here & ((1u << lane) - 1));
        if (to[k] != no_position)
          shared.to[at] = to[k], shared.ranks[at] = (word + k) * 32 + lane, shared.values[at] = values[k];
        queued += __popc(here);
        if (queued < 32) continue;
        __syncwarp();
        combine_queued(items, own, 32);
        queued -= 32;
        if (lane < queued)
          shared.to[own + lane] = shared.to[own + 32 + lane], shared.ranks[own + lane] = shared.ranks[own + 32 + lane],
                          shared.values[own + lane] = shared.values[own + 32 + lane];
        __syncwarp();
      }
    }
    __syncwarp();
    if (queued > 0) combine_queued(items, own, queued);
    round = most_rounds;
    __syncthreads();
  }

  // Some of the list, by a warp. Lanes that have one position find the same.
  __device__ void combine_queued(const ScatterItems<T>& items, uint32_t own, uint32_t count) const {
    uint32_t lane = threadIdx.x % 32, to = lane < count ? shared.to[own + lane] : no_position;
    State state{};
    if (to != no_position) state = states[to];
#pragma unroll 8
    for (uint32_t j = 0; j < 32; ++j) {
      uint32_t other = shared.to[own + j];
      T value = shared.values[own + j];
      if (j < count && other == to) f.combine(state, value, items.in_row(shared.ranks[own + j]));
    }
    __syncwarp();
    if (to != no_position) states[to] = state;
    __syncwarp();
  }

  __device__ void start(int64_t element, int size) const {
    using Read = decltype(f.read(int64_t{}));
    for (int first = threadIdx.x; first < size; first += tile) {
      Read x[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        x[k] = F::starts && first + k * threads < size ? f.read(element + first + k * threads) : Read{};
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k * threads < size) states[first + k * threads] = f.first(x[k]);
    }
  }

  __device__ void write(int64_t element, int size) const {
    using Read = decltype(f.read(int64_t{}));
    for (int first = threadIdx.x; first < size; first += tile) {
      Read x[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        x[k] = !F::starts && first + k * threads < size ? f.read(element + first + k * threads) : Read{};
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k * threads < size) f.write(element + first + k * threads, x[k], states[first + k * threads]);
    }
  }
};

template <class F, int threads, int blocks, int ahead>
__global__ void __launch_bounds__(threads, blocks)
    scatter_combined_kernel(F f, const int32_t* index, const typename F::Element* src, ScatterShape shape,
                            ScatterGrid grid) {
  using T = typename F::Element;
  using State = typename F::State;
  using Block = ScatterBlock<F, threads, ahead>;
  extern __shared__ __align__(16) char memory[];
  __shared__ typename Block::Shared shared;
  // Owners first: states of 8 and 16 bits may end anywhere.
  uint32_t* owners = reinterpret_cast<uint32_t*>(memory);
  State* states = reinterpret_cast<State*>(owners + max(grid.slots, int(Block::least_slots)));
  Block block{f, shared, states, owners, uint32_t(grid.slots - 1)};
  for (int64_t task = blockIdx.x; task < grid.tasks; task += gridDim.x) {
    int64_t row = task / grid.parts * grid.rows, begin = task % grid.parts * grid.length, reach = int64_t(1) << 31;
    int rows = int(min(shape.rows - row, int64_t(grid.rows)));
    int size = grid.rows > 1 ? rows * int(shape.count) : int(min(shape.count - begin, int64_t(grid.length)));
    int64_t element = row * shape.count + begin, count = rows * shape.items;
    uint32_t limit =
        grid.rows > 1 ? uint32_t(shape.count) : uint32_t(max(min(int64_t(size), reach - begin), int64_t(0)));
    ScatterItems<T> items{shape, grid, index + row * shape.items, src + row * shape.items, uint32_t(begin), limit, 0};
    block.start(element, size);
    block.round = Block::most_rounds;
    for (; items.first < count; items.first += Block::tile) block.combine(items, count - items.first);
    if (count == 0) __syncthreads();
    block.write(element, size);
    __syncthreads();
    if constexpr (GivesItems<F>) {
      for (items.first = 0; items.first < count; items.first += Block::tile)
#pragma unroll
        for (int k = 0; k < ahead; ++k) {
          uint32_t i = threadIdx.x + k * threads;
          if (items.first + i >= count) continue;
          int32_t to = items.index[items.first + i];
          uint32_t offset = items.offset(to, i);
          int64_t item = row * shape.items + items.first + i;
          if (offset != no_position)
            f.give(item, items.values[items.first + i], states[offset]);
          else if (begin == 0 && uint64_t(shape.position(to)) >= uint64_t(shape.count))
            f.drop(item);
        }
      __syncthreads();
    }
  }
}

// Rows that are short share a block of so many states. A long one has parts, of a number that as few rounds of blocks
// as possible have, each of which looks at all of the row's items; more where rows are few.
inline ScatterGrid scatter_grid(const ScatterShape& shape, int64_t most_states, int64_t most_slots, int64_t at_once) {
  constexpr int64_t least_length = 1024, most_items = 2048;
  ScatterGrid grid;
  int64_t count = std::max<int64_t>(shape.count, 1), items = std::max<int64_t>(shape.items, 1);
  int64_t rows = std::max<int64_t>(std::min({most_items / count, most_items / items, shape.rows / at_once}), 1);
  int64_t length = rows * count;
  if (rows == 1) {
    constexpr int64_t more_parts = 64;
    int64_t least = ceil_div(count, most_states), parts = least;
    int64_t most = std::max(least, std::min({4 * least, least + more_parts, count / least_length}));
    if (shape.rows * least < at_once)
      most = std::max(least, std::min(at_once / shape.rows, ceil_div(count, least_length)));
    auto cost = [&](int64_t parts) {
      return ceil_div(shape.rows * parts, at_once) * (items + 2 * ceil_div(count, parts));
    };
    for (int64_t more = least; more <= most; ++more)
      if (cost(more) < cost(parts)) parts = more;
    length = ceil_div(count, parts);
  }
  grid.rows = int(rows), grid.parts = int(ceil_div(count, std::min(length, count))), grid.length = int(length);
  grid.tasks = ceil_div(shape.rows, rows) * grid.parts;
  grid.slots = 256;
  while (grid.slots < length && grid.slots < most_slots) grid.slots *= 2;
  grid.items = Divisor<int32_t>(std::min<int64_t>(items, most_items));
  return grid;
}

template <class F, int threads, int blocks, int ahead>
Status scatter_by_blocks(const Executor& executor, const F& f, const int32_t* index, const typename F::Element* src,
                         const ScatterShape& shape, int64_t most_bytes, int64_t most_slots) {
  using Block = ScatterBlock<F, threads, ahead>;
  constexpr int64_t state = sizeof(typename F::State), slot = sizeof(uint32_t);
  most_bytes -= int64_t(sizeof(typename Block::Shared)), most_slots = std::max(most_slots, Block::least_slots);
  int at_once = blocks * std::max(multiprocessors_of_device(), 1);
  ScatterGrid grid = scatter_grid(shape, (most_bytes - most_slots * slot) / state, most_slots, at_once);
  auto kernel = scatter_combined_kernel<F, threads, blocks, ahead>;
  if (Status status = allow_shared_memory(kernel, most_bytes); !status.ok()) return status;
  unsigned all = unsigned(std::min<int64_t>(grid.tasks, 0x7fffffff));
  int64_t bytes = grid.length * state + std::max<int64_t>(grid.slots, Block::least_slots) * slot;
  kernel<<<all, threads, size_t(bytes), executor.stream>>>(f, index, src, shape, grid);
  return launched();
}

}  // namespace internal

// Of int32 positions, of which those past the row's end are dropped.
template <class F>
Status scatter_combined(const Executor& executor, const F& f, const int32_t* index, const typename F::Element* src,
                        const ScatterShape& shape) {
  using namespace internal;
  if (shape.rows * (shape.count + (GivesItems<F> ? shape.items : 0)) == 0) return {};
  constexpr int64_t state = sizeof(typename F::State), tiny = 512, short_row = 32 << 10;
  constexpr int few = state > 8 ? 2 : 4, many = state > 4 ? few : 6, blocks = state > 4 ? 4 : 5;
  int64_t longest = std::max(shape.items, shape.count);
  // A large kernel begins late, and of long rows blocks are few, with as many states as there is room for.
  if (longest <= tiny && shape.rows * longest <= 256 * tiny)
    return scatter_by_blocks<F, 128, 8, 2>(executor, f, index, src, shape, 24 << 10, 512);
  if (shape.count * state <= short_row && shape.rows >= 132)
    return scatter_by_blocks<F, 256, blocks, few>(executor, f, index, src, shape, 55 << 10, 4096);
  return scatter_by_blocks<F, 512, 2, many>(executor, f, index, src, shape, 111 << 10, 4096);
}

}  // namespace baracuda
