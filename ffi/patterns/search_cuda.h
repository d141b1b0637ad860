// The search pattern on a CUDA grid. Where a sequence has many values to find, each block plants a tree of it.
#pragma once

#include <bit>

#include "search.h"
#include "search_tree_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int search_threads = 1024, search_ahead = 2;
template <class T>
inline constexpr int search_tree_levels = 31 - std::countl_zero(uint32_t((1 << 16) / sizeof(T)));  // 64 KiB

template <bool right, bool by_reads, class T>
__global__ void __launch_bounds__(search_threads, 2)
    search_with_trees(const T* sequence, const T* values, int32_t* index, SearchShape shape, int levels, int64_t range,
                      int64_t blocks) {
  using Key = typename SortKey<T>::Key;
  extern __shared__ __align__(16) char memory[];
  uint32_t count = uint32_t(shape.values), step = uint32_t(blocks) * search_threads;
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks;
    SearchTree<T, right> tree{sequence + shape.sequence_row(row) * shape.count, shape.count, range,
                              reinterpret_cast<Key*>(memory), levels};
    tree.plant();
    __syncthreads();
    const T* mine = values + row * shape.values;
    int32_t* to = index + row * shape.values;
    for (uint32_t first = uint32_t(job % blocks) * search_threads + threadIdx.x; first < count;
         first += search_ahead * step) {
      Key keys[search_ahead] = {};
      int found[search_ahead];
#pragma unroll
      for (int k = 0; k < search_ahead; ++k)
        if (first + k * step < count) keys[k] = SortKey<T>::of(mine[first + k * step], false);
      if constexpr (by_reads)
        tree.find_by_reads(keys, found);
      else
        tree.find(keys, found);
#pragma unroll
      for (int k = 0; k < search_ahead; ++k)
        if (first + k * step < count) to[first + k * step] = found[k];
    }
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(256)
    search_each(const T* sequence, const T* values, int32_t* index, bool right, SearchShape shape) {
  int64_t step = int64_t(gridDim.x) * 256;
  for (int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x; i < shape.rows * shape.values; i += step) {
    Search<T> search{sequence + shape.sequence_row(i / shape.values) * shape.count, shape.count, right};
    index[i] = int32_t(search.of(values[i]));
  }
}

}  // namespace internal

template <class T>
Status search_rows(Executor executor, const T* sequence, const T* values, int32_t* index, bool right,
                   SearchShape shape) {
  using namespace internal;
  int64_t total = shape.rows * shape.values;
  if (total == 0) return {};
  int64_t blocks =
      std::clamp<int64_t>(ceil_div(264, shape.rows), 1, ceil_div(shape.values, search_threads * search_ahead));
  using Tree = SearchTree<T, true>;
  int levels = Tree::levels_of(shape.count, search_tree_levels<T>);
  int64_t range = Tree::range_of(shape.count, levels);
  // A tree pays when it is used for several times its nodes.
  if (shape.values > 1 << 30 || (int64_t(4) << levels) > shape.values / blocks) {
    unsigned grid = unsigned(std::min<int64_t>(ceil_div(total, 256), 132 * 64));
    search_each<<<grid, 256, 0, executor.stream>>>(sequence, values, index, right, shape);
    return launched();
  }
  bool aligned = reinterpret_cast<uintptr_t>(sequence) % sizeof(typename Tree::Read) == 0 &&
                 (shape.count % Tree::one_read == 0 || shape.rows == 1);
  auto kernel = range > 1 && aligned ? (right ? search_with_trees<true, true, T> : search_with_trees<false, true, T>)
                                     : (right ? search_with_trees<true, false, T> : search_with_trees<false, false, T>);
  int bytes = int(sizeof(T) << levels);
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  unsigned grid = unsigned(std::min<int64_t>(shape.rows * blocks, 0x7fffffff));
  kernel<<<grid, search_threads, size_t(bytes), executor.stream>>>(sequence, values, index, shape, levels, range,
                                                                   blocks);
  return launched();
}

}  // namespace baracuda
