// The histogram pattern on a CUDA grid: a block counts its cells in shared memory, several times over where there is
// room, so that lanes with the same bin do not wait for each other; then it adds what it has to the result. Additions
// of integers give the same in any order.
#pragma once

#include <algorithm>

#include "histogram.h"
#include "search_tree_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int count_threads = 1024;
inline constexpr int64_t most_counts = 32768, roomy_counts = 16384;  // of a block: 128 KiB, and 64

// ---------------------------------------------------------------------------------------------------------------------
// How the threads of a block find the bins of cells of a row, -1 for none

template <class Functor>
struct BinFinder;

template <class I>
struct BinFinder<BinOfId<I>> {
  using Cell = I;
  static constexpr int ahead = 8;
  BinOfId<I> functor;

  static int levels(int64_t) { return 0; }
  static BARACUDA_HD int64_t bytes(int) { return 0; }
  __device__ void prepare(char*, int64_t, int) {}
  __device__ void find(const I (&x)[ahead], int (&bin)[ahead]) const {
#pragma unroll
    for (int k = 0; k < ahead; ++k) bin[k] = x[k] >= 0 && x[k] < I(functor.bins) ? int(x[k]) : -1;
  }
};

// The edges are in shared memory: as a list where a bin can be guessed, else as a tree.
template <class T>
struct BinFinder<BinOfEdges<T>> {
  using Cell = T;
  static constexpr int ahead = 4;
  using Key = typename SortKey<T>::Key;
  BinOfEdges<T> functor;
  Bins<T> bins{};
  SearchTree<T, true> tree{};
  Key least{}, most{};

  static int levels(int64_t bins) {
    int levels = 1;
    while (int64_t(1) << levels <= bins + 1) ++levels;
    return levels;
  }
  static BARACUDA_HD int64_t bytes(int levels) { return (int64_t(sizeof(T)) << levels) + 15 & -16; }
  __device__ void prepare(char* memory, int64_t row, int levels) {
    bins = functor.of_row(row);
    tree = {bins.edges, bins.count + 1, 1, reinterpret_cast<Key*>(memory), levels};
    least = bins.edge(0), most = bins.edge(bins.count);
    if (!bins.uniform)
      tree.plant();
    else
      for (int i = threadIdx.x; i <= bins.count; i += count_threads) tree.nodes[i] = bins.edge(i);
  }
  __device__ void find(const T (&x)[ahead], int (&bin)[ahead]) const {
    Key keys[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) keys[k] = SortKey<T>::of(x[k], false);
    if (bins.uniform) {
      using Value = Comparable<T>;
      int last = int(bins.count) - 1;
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        bin[k] = -1;
        if (keys[k] < least || keys[k] > most) continue;
        Value place = (Value(x[k]) - bins.low) * bins.scale;
        int b = min(max(int(place), 0), last);
        while (b < last && keys[k] >= tree.nodes[b + 1]) ++b;
        while (b > 0 && keys[k] < tree.nodes[b]) --b;
        bin[k] = b;
      }
      return;
    }
    tree.find(keys, bin);
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      bool is_last = keys[k] == most && most != SortKey<T>::all;
      bin[k] = is_last ? int(bins.count) - 1 : bin[k] <= bins.count ? bin[k] - 1 : -1;
    }
  }
};

// ---------------------------------------------------------------------------------------------------------------------

template <class Functor>
__global__ void __launch_bounds__(count_threads, 2)
    count_in_blocks(BinFinder<Functor> finder, int32_t* counts, CountShape shape, int64_t blocks, int copies,
                    int levels) {
  using Cell = typename BinFinder<Functor>::Cell;
  constexpr int ahead = BinFinder<Functor>::ahead;
  extern __shared__ __align__(16) char memory[];
  uint32_t* mine = reinterpret_cast<uint32_t*>(memory + BinFinder<Functor>::bytes(levels));
  int bins = int(shape.bins), copy = threadIdx.x & (copies - 1);
  uint32_t count = uint32_t(shape.count), step = uint32_t(blocks) * count_threads;
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks;
    for (int i = threadIdx.x; i < bins * copies; i += count_threads) mine[i] = 0;
    finder.prepare(memory, row, levels);
    __syncthreads();
    const Cell* x = finder.functor.x + row * shape.count;
    for (uint32_t first = uint32_t(job % blocks) * count_threads + threadIdx.x; first < count; first += ahead * step) {
      Cell cells[ahead] = {};
      int bin[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k * step < count) cells[k] = x[first + k * step];
      finder.find(cells, bin);
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (bin[k] >= 0 && first + k * step < count) atomicAdd(mine + bin[k] * copies + copy, 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += count_threads) {
      uint32_t sum = 0;
      for (int i = 0; i < copies; ++i) sum += mine[bin * copies + ((i + bin) & (copies - 1))];
      if (sum) atomicAdd(counts + row * bins + bin, int32_t(sum));
    }
    __syncthreads();
  }
}

// Bins that no block has room for.
template <class Functor>
__global__ void __launch_bounds__(count_threads, 2)
    count_in_memory(Functor functor, int32_t* counts, CountShape shape, int64_t blocks) {
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks, step = blocks * count_threads;
    for (int64_t i = job % blocks * count_threads + threadIdx.x; i < shape.count; i += step)
      if (int64_t bin = functor.bin(row, i); bin >= 0) atomicAdd(counts + row * shape.bins + bin, 1);
  }
}

}  // namespace internal

template <class Functor>
Status count_bins(Executor executor, const Functor& functor, int32_t* counts, CountShape shape) {
  using namespace internal;
  if (shape.rows * shape.bins == 0) return {};
  cudaError_t error = cudaMemsetAsync(counts, 0, size_t(shape.rows * shape.bins) * sizeof(int32_t), executor.stream);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  if (shape.count == 0) return {};
  // A block has more cells than counters, if there are as many.
  int64_t cells = std::max<int64_t>(count_threads * BinFinder<Functor>::ahead, shape.bins);
  int64_t blocks = std::clamp<int64_t>(ceil_div(264, shape.rows), 1, ceil_div(shape.count, cells));
  unsigned grid = unsigned(std::min<int64_t>(shape.rows * blocks, 0x7fffffff));
  int levels = BinFinder<Functor>::levels(shape.bins);
  int64_t bytes = BinFinder<Functor>::bytes(levels), of_block = ceil_div(shape.count, blocks), copies = 1;
  if (shape.bins > most_counts || bytes > 65536) {
    count_in_memory<<<grid, count_threads, 0, executor.stream>>>(functor, counts, shape, blocks);
    return launched();
  }
  while (copies < 32 && 2 * copies * shape.bins <= std::min(roomy_counts, of_block)) copies *= 2;
  bytes += shape.bins * copies * int64_t(sizeof(uint32_t));
  if (Status status = allow_shared_memory(count_in_blocks<Functor>, bytes); !status.ok()) return status;
  count_in_blocks<<<grid, count_threads, size_t(bytes), executor.stream>>>(BinFinder<Functor>{functor}, counts, shape,
                                                                           blocks, int(copies), levels);
  return launched();
}

}  // namespace baracuda
