// The search pattern on a CUDA grid. Where a sequence has many values to find, a block keeps some of its cells in
// shared memory, as a tree in the order of levels: nodes of one level lie side by side, so the lanes of a warp, each
// elsewhere in it, meet in few banks. The tree finds a stretch of the sequence, in which the rest of the search goes
// on.
#pragma once

#include <algorithm>

#include "search.h"

namespace baracuda {
namespace internal {

inline constexpr int search_threads = 1024, search_ahead = 4;
inline constexpr int64_t search_tree_bytes = 1 << 16;

// The nodes 1 ... 2^levels - 1 of a tree; stretch s of the sequence ends with the s-th of them from the left.
template <class T>
struct SearchTree {
  using Key = typename SortKey<T>::Key;
  Search<T> search;
  const Key* nodes;
  int levels;
  int64_t stretch;

  __device__ void plant(Key* to) const {
    for (int node = threadIdx.x + 1; node < 1 << levels; node += search_threads) {
      int level = 31 - __clz(node);
      int64_t from_left = ((2 * int64_t(node - (1 << level)) + 1) << (levels - 1 - level)) - 1;
      int64_t cell = (from_left + 1) * stretch - 1;
      to[node] = cell < search.count ? SortKey<T>::of(search.sequence[cell], false) : SortKey<T>::all;
    }
  }
  // How many stretches are before the key.
  template <int n>
  __device__ void find(const Key (&keys)[n], int64_t (&found)[n]) const {
    int at[n];
#pragma unroll
    for (int k = 0; k < n; ++k) at[k] = 1;
    for (int level = 0; level < levels; ++level)
#pragma unroll
      for (int k = 0; k < n; ++k) at[k] = 2 * at[k] + (search.right ? nodes[at[k]] <= keys[k] : nodes[at[k]] < keys[k]);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      int64_t first = min(int64_t(at[k] - (1 << levels)) * stretch, search.count);
      Search<T> rest{search.sequence + first, min(stretch - 1, search.count - first), search.right};
      found[k] = first + rest.of_key(keys[k]);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(search_threads, 2)
    search_with_trees(const T* sequence, const T* values, int32_t* index, bool right, SearchShape shape, int levels,
                      int64_t stretch, int64_t blocks) {
  using Key = typename SortKey<T>::Key;
  extern __shared__ __align__(16) char memory[];
  Key* nodes = reinterpret_cast<Key*>(memory);
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks, step = blocks * search_threads;
    Search<T> search{sequence + shape.sequence_row(row) * shape.count, shape.count, right};
    SearchTree<T> tree{search, nodes, levels, stretch};
    tree.plant(nodes);
    __syncthreads();
    for (int64_t first = job % blocks * search_threads + threadIdx.x; first < shape.values;
         first += search_ahead * step) {
      Key keys[search_ahead] = {};
      int64_t found[search_ahead];
#pragma unroll
      for (int k = 0; k < search_ahead; ++k)
        if (first + k * step < shape.values)
          keys[k] = SortKey<T>::of(values[row * shape.values + first + k * step], false);
      tree.find(keys, found);
#pragma unroll
      for (int k = 0; k < search_ahead; ++k)
        if (first + k * step < shape.values) index[row * shape.values + first + k * step] = int32_t(found[k]);
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
  int levels = 1;
  while ((int64_t(1) << levels) <= shape.count && (int64_t(sizeof(T)) << (levels + 1)) <= search_tree_bytes) ++levels;
  // A tree pays when it is used for several times its nodes.
  if ((int64_t(4) << levels) > shape.values / blocks) {
    unsigned grid = unsigned(std::min<int64_t>(ceil_div(total, 256), 132 * 64));
    search_each<<<grid, 256, 0, executor.stream>>>(sequence, values, index, right, shape);
    return launched();
  }
  int64_t stretch = ceil_div(shape.count + 1, int64_t(1) << levels);
  int bytes = int(sizeof(T) << levels);
  cudaError_t error = cudaFuncSetAttribute(search_with_trees<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  unsigned grid = unsigned(std::min<int64_t>(shape.rows * blocks, 0x7fffffff));
  search_with_trees<<<grid, search_threads, size_t(bytes), executor.stream>>>(sequence, values, index, right, shape,
                                                                              levels, stretch, blocks);
  return launched();
}

}  // namespace baracuda
