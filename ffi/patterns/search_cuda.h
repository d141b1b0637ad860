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

inline constexpr int each_threads = 256;

// Each value by itself. A warp has neighbors, `ahead` times 32: of many, it asks first where its first and last one
// are, each by half of its lanes, which ask at 16 positions at a time. Where the others are between these, as where
// values are in order, they are searched there.
template <class T, int ahead>
__global__ void __launch_bounds__(each_threads)
    search_each(const T* sequence, const T* values, int32_t* index, bool right, SearchShape shape, int64_t groups) {
  using Key = typename SortKey<T>::Key;
  int64_t warps = int64_t(gridDim.x) * (each_threads / 32), lane = threadIdx.x % 32;
  for (int64_t group = int64_t(blockIdx.x) * (each_threads / 32) + threadIdx.x / 32; group < shape.rows * groups;
       group += warps) {
    int64_t row = group / groups, first = (group - row * groups) * (32 * ahead) + lane;
    Search<T> search{sequence + shape.sequence_row(row) * shape.count, shape.count, right};
    const T* mine = values + row * shape.values;
    Key keys[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k)  // those after the last are that
      keys[k] = SortKey<T>::of(mine[min(first + k * 32, shape.values - 1)], false);
    int64_t low = 0, high = shape.count;
    if constexpr (ahead > 1) {
      Key least = __shfl_sync(~0u, keys[0], 0), most = __shfl_sync(~0u, keys[ahead - 1], 31);
      bool is_between = true;
#pragma unroll
      for (int k = 0; k < ahead; ++k) is_between &= least <= keys[k] && keys[k] <= most;
      if (__all_sync(~0u, is_between)) {
        Key end = lane < 16 ? least : most;
        while (__any_sync(~0u, low < high)) {
          int64_t step = (high - low + 15) / 16, at = low + lane % 16 * step;
          uint32_t before = __ballot_sync(~0u, at < high && search.is_before(at, end));
          int64_t steps = __popc(before >> (lane & 16) & 0xffff);
          high = steps == 0 ? low : min(high, low + steps * step);
          low += steps == 0 ? 0 : (steps - 1) * step + 1;
        }
        low = __shfl_sync(~0u, low, 0), high = __shfl_sync(~0u, high, 16);
      }
    }
    // As Search::of_key, of all keys together.
    int64_t found[ahead], left = max(high - low, int64_t(0));
#pragma unroll
    for (int k = 0; k < ahead; ++k) found[k] = low;
    while (left > 1) {
      int64_t half = left / 2;
#pragma unroll
      for (int k = 0; k < ahead; ++k) found[k] += search.is_before(found[k] + half - 1, keys[k]) ? half : 0;
      left -= half;
    }
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      if (left == 1) found[k] += search.is_before(found[k], keys[k]);
      if (first + k * 32 < shape.values) index[row * shape.values + first + k * 32] = int32_t(found[k]);
    }
  }
}

template <int ahead, class T>
void search_each_by(const Executor& executor, const T* sequence, const T* values, int32_t* index, bool right,
                    const SearchShape& shape) {
  int64_t groups = ceil_div(shape.values, 32 * ahead);
  unsigned grid = unsigned(std::min<int64_t>(ceil_div(shape.rows * groups, each_threads / 32), 132 * 64));
  search_each<T, ahead><<<grid, each_threads, 0, executor.stream>>>(sequence, values, index, right, shape, groups);
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
    constexpr int ahead = 8;
    constexpr int64_t running = int64_t(132) * 2048;  // threads
    // Fewer values would leave threads without any.
    if (shape.values >= 32 * ahead && total >= ahead * running / 3)
      search_each_by<ahead>(executor, sequence, values, index, right, shape);
    else
      search_each_by<1>(executor, sequence, values, index, right, shape);
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
