// Elements that are combined by their positions in rows, on a CUDA grid.
//
// A warp has the states of a part of a row in shared memory and goes through the row's items in their order, 32 at a
// time. Of those with one position the first is combined, then the second, and so on: each state has the order of its
// items. Whether any have one position is seen in owners: each lane writes its number where its position says, and who
// reads another there shares it, whichever lane came last. A match of all lanes, which is slow, is formed only then.
//
// What gives each item something goes through the items again, which are in a cache by then. Each part of a row gives
// to its own items, and the first one to those that are dropped.
#pragma once

#include <algorithm>

#include "../kernels/scatter.h"
#include "shared_memory_cuda.h"
#include "sort.h"

namespace baracuda {
namespace internal {

inline constexpr int scatter_warps = 4, scatter_blocks = 3;  // of a block, and of a multiprocessor
inline constexpr int64_t scatter_bytes = 1 << 14,            // of a warp's part of a row, so that these have room
    least_scatter_states = 256, enough_scatter_warps = 512;
inline constexpr uint32_t scatter_owners = 1 << 11;  // bytes of a warp; positions that are equal modulo it share one

template <class F>
__global__ void __launch_bounds__(32 * scatter_warps, scatter_blocks)
    scatter_combined_kernel(F f, const int32_t* index, const typename F::Element* src, ScatterShape shape, int length,
                            int64_t parts) {
  using T = typename F::Element;
  using State = typename F::State;
  using Read = decltype(f.read(int64_t{}));
  constexpr int ahead = 8;
  constexpr uint32_t all = ~0u, none = ~0u;
  extern __shared__ __align__(16) char memory[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  State* states = reinterpret_cast<State*>(memory) + warp * length;
  volatile uint8_t* owners =
      reinterpret_cast<uint8_t*>(memory) + scatter_warps * length * sizeof(State) + warp * scatter_owners;
  int64_t tasks = shape.rows * parts, step = int64_t(gridDim.x) * scatter_warps;
  for (int64_t task = int64_t(blockIdx.x) * scatter_warps + warp; task < tasks; task += step) {
    int64_t row = task / parts, begin = task % parts * length, element = row * shape.count + begin;
    int size = int(shape.count - begin < length ? shape.count - begin : length);
    for (int first = lane; first < size; first += 32 * ahead) {
      Read x[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        x[k] = F::starts && first + k * 32 < size ? f.read(element + first + k * 32) : Read{};
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k * 32 < size) states[first + k * 32] = f.first(x[k]);
    }
    __syncwarp();
    const int32_t* positions = index + row * shape.items;
    const T* from = src + row * shape.items;
    for (int64_t first = 0; first < shape.items; first += 32 * ahead) {
      uint32_t to[ahead];
      T values[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        int64_t item = first + k * 32 + lane;
        to[k] = none;
        if (item < shape.items) {
          int64_t offset = shape.position(positions[item]) - begin;
          if (uint64_t(offset) < uint64_t(size)) to[k] = uint32_t(offset);
          values[k] = from[item];
        }
      }
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        bool is_here = to[k] != none;
        int32_t item = int32_t(first + k * 32 + lane);
        if (is_here) owners[to[k] % scatter_owners] = uint8_t(lane);
        __syncwarp();
        if (__all_sync(all, !is_here || owners[to[k] % scatter_owners] == lane)) {
          if (is_here) f.combine(states[to[k]], values[k], item);
        } else {
          uint32_t same = __match_any_sync(all, to[k]);
          int turn = is_here ? __popc(same & ((1u << lane) - 1)) : -1;
          for (int now = 0; __any_sync(all, turn >= now); ++now) {
            if (turn == now) f.combine(states[to[k]], values[k], item);
            __syncwarp();
          }
        }
        __syncwarp();
      }
    }
    for (int first = lane; first < size; first += 32 * ahead) {
      Read x[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        x[k] = !F::starts && first + k * 32 < size ? f.read(element + first + k * 32) : Read{};
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k * 32 < size) f.write(element + first + k * 32, x[k], states[first + k * 32]);
    }
    __syncwarp();
    if constexpr (GivesItems<F>) {
      for (int64_t first = lane; first < shape.items; first += 32 * ahead) {
        int64_t to[ahead];
        T values[ahead];
#pragma unroll
        for (int k = 0; k < ahead; ++k)
          if (int64_t item = first + k * 32; item < shape.items)
            to[k] = shape.position(positions[item]), values[k] = from[item];
#pragma unroll
        for (int k = 0; k < ahead; ++k) {
          int64_t item = first + k * 32, offset = to[k] - begin;
          if (item >= shape.items) continue;
          if (uint64_t(offset) < uint64_t(size))
            f.give(row * shape.items + item, values[k], states[offset]);
          else if (begin == 0 && uint64_t(to[k]) >= uint64_t(shape.count))
            f.drop(row * shape.items + item);
        }
      }
      __syncwarp();
    }
  }
}

}  // namespace internal

// Of int32 positions, of which those past the row's end are dropped.
template <class F>
Status scatter_combined(const Executor& executor, const F& f, const int32_t* index, const typename F::Element* src,
                        const ScatterShape& shape) {
  using namespace internal;
  constexpr int64_t state = sizeof(typename F::State);
  if (shape.rows * (shape.count + (GivesItems<F> ? shape.items : 0)) == 0) return {};
  int64_t length = std::clamp<int64_t>(shape.count, 1, scatter_bytes / state);
  while (length > least_scatter_states && shape.rows * ceil_div(shape.count, length) < enough_scatter_warps)
    length = ceil_div(length, 2);
  int64_t parts = std::max<int64_t>(ceil_div(shape.count, length), 1),
          bytes = scatter_warps * (length * state + scatter_owners);
  if (Status status = allow_shared_memory(scatter_combined_kernel<F>, scatter_warps * (scatter_bytes + scatter_owners));
      !status.ok())
    return status;
  int64_t blocks = std::min<int64_t>(ceil_div(shape.rows * parts, scatter_warps), 0x7fffffff);
  scatter_combined_kernel<F><<<unsigned(blocks), 32 * scatter_warps, size_t(bytes), executor.stream>>>(
      f, index, src, shape, int(length), parts);
  return launched();
}

}  // namespace baracuda
