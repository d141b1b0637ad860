// Items that are put into rows, the last one at a position, on a CUDA grid. A block has a tile of a row. Which item is
// the last at each position of it is the maximum of their numbers in shared memory, the same in whichever order they
// come. So a tile is written from end to end, and x read where there is an item.
//
// A block reads all items of its row. Where a row is of many tiles, maxima are formed in a workspace instead, which
// each item reaches by itself; without one, as in an export for any size, by the same blocks.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "scatter_last.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int last_block = 512, last_blocks_at_once = 4;
// Positions of a tile: so many blocks have room on a multiprocessor. Rows of more tiles than some take the workspace.
inline constexpr int64_t last_tile = 14080, most_last_tiles = 8;

struct LastTiles {
  ScatterLastShape shape;
  int length;     // of a tile, a multiple of 8
  int64_t tiles;  // of a row

  explicit LastTiles(const ScatterLastShape& shape)
      : shape(shape),
        length(int(ceil_div(ceil_div(shape.count, ceil_div(shape.count, last_tile)), 8) * 8)),
        tiles(ceil_div(shape.count, length)) {}
};

// Has elements that are read later brought to the second-level cache.
template <class T>
__device__ void prefetch_elements(const T* from, int64_t count) {
  constexpr int sector = 32 / int(sizeof(T));
  for (int64_t i = int64_t(threadIdx.x) * sector; i < count; i += last_block * sector)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
}

// The numbers of a row's last items at positions [begin, begin + size), in shared memory; -1 for none. The first items
// are on their way while that is filled.
__device__ inline void find_last(const int32_t* to, int64_t items, int64_t begin, int size, int32_t* last) {
  constexpr int ahead = 8;
  int32_t at[ahead];
  auto read = [&](int64_t first) {
#pragma unroll
    for (int k = 0; k < ahead; ++k) at[k] = first + k * last_block < items ? to[first + k * last_block] : -1;
  };
  read(threadIdx.x);
  for (int i = threadIdx.x; i < size; i += last_block) last[i] = -1;
  __syncthreads();
  for (int64_t first = threadIdx.x; first < items; first += ahead * last_block) {
    if (first >= ahead * last_block) read(first);
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (at[k] >= begin && at[k] - begin < size) atomicMax(last + (at[k] - begin), int32_t(first + k * last_block));
  }
  __syncthreads();
}

// V neighbors of a row, given the numbers of the items there.
template <int V, class T>
__device__ Vector<T, V> items_of(const T* from, const Vector<int32_t, V>& last) {
  Vector<T, V> values;
#pragma unroll
  for (int k = 0; k < V; ++k) values.lane[k] = last.lane[k] >= 0 ? from[last.lane[k]] : T{};
  return values;
}

template <int V, class T>
__global__ void __launch_bounds__(last_block, last_blocks_at_once)
    scatter_last_tiles(LastTiles grid, const int32_t* __restrict__ index, const T* __restrict__ x, T* __restrict__ y) {
  extern __shared__ __align__(32) char memory[];
  int32_t* last = reinterpret_cast<int32_t*>(memory);
  const ScatterLastShape& shape = grid.shape;
  for (int64_t task = blockIdx.x; task < shape.rows * grid.tiles; task += gridDim.x) {
    int64_t row = task / grid.tiles, begin = (task - row * grid.tiles) * grid.length;
    int size = int(shape.count - begin < grid.length ? shape.count - begin : grid.length);
    const T* from = x + row * shape.items;
    T* to = y + row * shape.count + begin;
    prefetch_elements(from, shape.items);
    find_last(index + row * shape.items, shape.items, begin, size, last);
    constexpr int together = V > 4 ? 1 : 2, step = last_block * V;
    for (int first = threadIdx.x * V; first < size; first += together * step) {
      Vector<T, V> values[together];
#pragma unroll
      for (int k = 0; k < together; ++k)
        if (first + k * step < size) values[k] = items_of(from, load<V>(last + first + k * step));
#pragma unroll
      for (int k = 0; k < together; ++k)
        if (first + k * step < size) store<V>(to + first + k * step, values[k]);
    }
    __syncthreads();
  }
}

// An item whose index is out of range is the first tile's.
template <class T>
__global__ void __launch_bounds__(last_block, last_blocks_at_once)
    take_last_tiles(LastTiles grid, const int32_t* __restrict__ index, const T* __restrict__ dy, T* __restrict__ dx) {
  extern __shared__ __align__(32) char memory[];
  int32_t* last = reinterpret_cast<int32_t*>(memory);
  const ScatterLastShape& shape = grid.shape;
  for (int64_t task = blockIdx.x; task < shape.rows * grid.tiles; task += gridDim.x) {
    int64_t row = task / grid.tiles, begin = (task - row * grid.tiles) * grid.length;
    int size = int(shape.count - begin < grid.length ? shape.count - begin : grid.length);
    const int32_t* to = index + row * shape.items;
    const T* from = dy + row * shape.count;
    // Where there is an item for most sectors, all are read.
    if (shape.items * 8 >= shape.count) prefetch_elements(from + begin, size);
    find_last(to, shape.items, begin, size, last);
    T* mine = dx + row * shape.items;
    constexpr int ahead = 4;
    for (int64_t first = threadIdx.x; first < shape.items; first += ahead * last_block) {
      T values[ahead];
      bool is_mine[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        int64_t item = first + k * last_block;
        int64_t at = item < shape.items ? to[item] : -1;
        bool is_there = at >= begin && at - begin < size;
        is_mine[k] = item < shape.items && (is_there || (begin == 0 && (at < 0 || at >= shape.count)));
        values[k] = is_there && last[at - begin] == item ? from[at] : T{};
      }
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (is_mine[k]) mine[first + k * last_block] = values[k];
    }
    __syncthreads();
  }
}

// The same by a workspace, last [rows, count], which begins as -1.

inline __global__ void __launch_bounds__(last_block)
    mark_last(ScatterLastShape shape, const int32_t* __restrict__ index, int32_t* __restrict__ last) {
  int64_t step = int64_t(gridDim.x) * last_block, all = shape.rows * shape.items;
  for (int64_t i = int64_t(blockIdx.x) * last_block + threadIdx.x; i < all; i += step) {
    int64_t row = i / shape.items, at = index[i];
    if (uint64_t(at) < uint64_t(shape.count)) atomicMax(last + row * shape.count + at, int32_t(i - row * shape.items));
  }
}

template <int V, class T>
__global__ void __launch_bounds__(last_block) scatter_marked(ScatterLastShape shape, const int32_t* __restrict__ last,
                                                             const T* __restrict__ x, T* __restrict__ y) {
  int64_t step = int64_t(gridDim.x) * last_block * V, all = shape.rows * shape.count;
  for (int64_t i = (int64_t(blockIdx.x) * last_block + threadIdx.x) * V; i < all; i += step) {
    store<V>(y + i, items_of(x + i / shape.count * shape.items, load<V>(last + i)));
  }
}

template <class T>
__global__ void __launch_bounds__(last_block)
    take_marked(ScatterLastShape shape, const int32_t* __restrict__ index, const int32_t* __restrict__ last,
                const T* __restrict__ dy, T* __restrict__ dx) {
  int64_t step = int64_t(gridDim.x) * last_block, all = shape.rows * shape.items;
  for (int64_t i = int64_t(blockIdx.x) * last_block + threadIdx.x; i < all; i += step) {
    int64_t row = i / shape.items, at = index[i], from = row * shape.count + at;
    bool is_last = uint64_t(at) < uint64_t(shape.count) && last[from] == i - row * shape.items;
    dx[i] = is_last ? dy[from] : T{};
  }
}

inline unsigned last_blocks(int64_t threads) {
  return unsigned(std::clamp<int64_t>(ceil_div(threads, last_block), 1, 132 * 64));
}

// Marks the last items in the workspace, or returns null where tiles find them.
inline Status mark_in_workspace(Executor& executor, const ScatterLastShape& shape, const int32_t* index,
                                int32_t*& last) {
  last = nullptr;
  if (LastTiles(shape).tiles <= most_last_tiles || executor.workspace_bytes == 0) return {};
  last = executor.scratch<int32_t>(shape.rows * shape.count);
  if (last == nullptr) return small_workspace;
  cudaError_t error = cudaMemsetAsync(last, 0xff, size_t(shape.rows * shape.count) * sizeof(int32_t), executor.stream);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  mark_last<<<last_blocks(shape.rows * shape.items), last_block, 0, executor.stream>>>(shape, index, last);
  return launched();
}

// body(Constant<V>) for as many elements as a store of 16 bytes has, where rows are of whole vectors.
template <class T, class Body>
Status for_last_vectors(const ScatterLastShape& shape, const Body& body) {
  constexpr int V = 16 / int(sizeof(T));
  if (shape.count % V == 0) return body(std::integral_constant<int, V>());
  return body(std::integral_constant<int, 1>());
}

// launch(kernel) of a block for each tile.
template <class Kernel, class... Args>
Status launch_tiles(const Executor& executor, Kernel kernel, const LastTiles& grid, Args... args) {
  size_t bytes = size_t(grid.length) * sizeof(int32_t);
  if (Status status = allow_shared_memory(kernel, int64_t(bytes)); !status.ok()) return status;
  unsigned blocks = unsigned(std::min<int64_t>(grid.shape.rows * grid.tiles, 0x7fffffff));
  kernel<<<blocks, last_block, bytes, executor.stream>>>(grid, args...);
  return launched();
}

}  // namespace internal

template <class T>
Status scatter_last(Executor executor, const int32_t* index, const T* x, T* y, const ScatterLastShape& shape) {
  using namespace internal;
  if (shape.rows * shape.count == 0) return {};
  int32_t* last;
  if (Status status = mark_in_workspace(executor, shape, index, last); !status.ok()) return status;
  return for_last_vectors<T>(shape, [&](auto width) {
    constexpr int V = decltype(width)::value;
    if (last == nullptr) return launch_tiles(executor, scatter_last_tiles<V, T>, LastTiles(shape), index, x, y);
    unsigned blocks = last_blocks(shape.rows * shape.count / V);
    scatter_marked<V><<<blocks, last_block, 0, executor.stream>>>(shape, last, x, y);
    return launched();
  });
}

template <class T>
Status take_last(Executor executor, const int32_t* index, const T* dy, T* dx, const ScatterLastShape& shape) {
  using namespace internal;
  if (shape.rows * shape.items == 0) return {};
  if (shape.count == 0) {
    cudaError_t error = cudaMemsetAsync(dx, 0, size_t(shape.rows * shape.items) * sizeof(T), executor.stream);
    return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
  }
  int32_t* last;
  if (Status status = mark_in_workspace(executor, shape, index, last); !status.ok()) return status;
  if (last == nullptr) return launch_tiles(executor, take_last_tiles<T>, LastTiles(shape), index, dy, dx);
  unsigned blocks = last_blocks(shape.rows * shape.items);
  take_marked<<<blocks, last_block, 0, executor.stream>>>(shape, index, last, dy, dx);
  return launched();
}

}  // namespace baracuda
