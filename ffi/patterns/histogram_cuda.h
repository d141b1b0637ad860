// The histogram pattern on a CUDA grid: a block counts its elements in shared memory, several times over where there is
// room, so that lanes with the same bin do not wait for each other; then it adds what it has to the result. Additions
// of integers give the same in any order.
#pragma once

#include <algorithm>

#include "histogram.h"
#include "search_tree_cuda.h"
#include "shared_memory_cuda.h"
#include "uniform_positions_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int count_threads = 1024;
inline constexpr int64_t most_counts = 32768, roomy_counts = 16384;  // of a block: 128 KiB, and 64

// ---------------------------------------------------------------------------------------------------------------------
// How the threads of a block find the counters of elements of a row. Counter b + 1 is that of bin b; before the first
// and after the last is one for elements that are in no bin.

// What a thread reads at once.
template <class Element>
struct alignas(std::min<int>(16, 4 * sizeof(Element))) ElementsRead {
  static constexpr int count = std::min<int>(4, 16 / sizeof(Element));
  Element elements[count];
};

template <class Functor>
struct CounterFinder;

template <class I>
struct CounterFinder<BinOfId<I>> {
  using Element = I;
  BinOfId<I> functor;

  static int levels(int64_t) { return 0; }
  static BARACUDA_HD int64_t bytes(int) { return 0; }
  static __device__ I none() { return -1; }
  __device__ void prepare(char*, int64_t, int) {}
  template <class Count>
  __device__ void run(const Count& count) const {
    uint32_t bins = uint32_t(functor.bins);
    count([=]<int n>(const I(&x)[n], uint32_t (&counter)[n]) {
#pragma unroll
      for (int k = 0; k < n; ++k) counter[k] = x[k] == I(int(x[k])) && uint32_t(x[k]) < bins ? uint32_t(x[k]) + 1 : 0;
    });
  }
};

// The edges are in shared memory. Where they are uniform an element's position among them is computed, and only a
// element near an edge is compared, with that one; else they are a tree.
template <class T>
struct CounterFinder<BinOfEdges<T>> {
  using Element = T;
  using Key = typename SortKey<T>::Key;
  using Value = Comparable<T>;
  BinOfEdges<T> functor;
  Bins<T> bins{};
  Key* memory = nullptr;
  int tree_levels = 0;
  UniformPositions<Value> positions{};

  static int levels(int64_t bins) {
    int levels = 1;
    while (int64_t(1) << levels <= bins + 1) ++levels;
    return levels;
  }
  static BARACUDA_HD int64_t bytes(int levels) { return (int64_t(sizeof(T)) << levels) + 15 & -16; }
  __device__ void prepare(char* at, int64_t row, int levels) {
    bins = functor.of_row(row), memory = reinterpret_cast<Key*>(at), tree_levels = levels;
    positions = UniformPositions<Value>(bins);
    if (!positions.known())
      tree().plant();
    else
      for (int i = threadIdx.x; i <= bins.count; i += count_threads) edges()[i] = bins.edges[i];
  }
  static __device__ T none() { return SortKey<T>::number(SortKey<T>::all, false); }  // NaN
  template <class Count>
  __device__ void run(const Count& count) const {
    positions.known() ? run_by_positions(count) : run_by_tree(count);
  }

 private:
  __device__ T* edges() const { return reinterpret_cast<T*>(memory); }
  __device__ SearchTree<T, true> tree() const { return {bins.edges, bins.count + 1, 1, memory, tree_levels}; }

  template <class Count>
  __device__ void run_by_positions(const Count& count) const {
    const T* edges = this->edges();
    uint32_t last = uint32_t(bins.count);
    count([edges, last, positions = positions]<int n>(const T(&x)[n], uint32_t (&counter)[n]) {
      Value off[n], most = 0;
#pragma unroll
      for (int k = 0; k < n; ++k) counter[k] = positions.of(Value(x[k]), off[k]), most = fmax(most, fabs(off[k]));
      if (positions.sure(most)) return;
#pragma unroll
      for (int k = 0; k < n; ++k) {
        if (positions.sure(off[k])) continue;
        uint32_t edge = counter[k] - (off[k] < Value(0));
        Value value = Value(x[k]), start = Value(edges[edge]);
        counter[k] = edge + (value > start || (value == start && edge < last));
      }
    });
  }
  template <class Count>
  __device__ void run_by_tree(const Count& count) const {
    Key most = bins.edge(bins.count);
    count([most, last = int(bins.count), tree = tree()]<int n>(const T(&x)[n], uint32_t (&counter)[n]) {
      Key keys[n];
      int edges[n];
#pragma unroll
      for (int k = 0; k < n; ++k) keys[k] = SortKey<T>::of(x[k], false);
      tree.find(keys, edges);
#pragma unroll
      for (int k = 0; k < n; ++k) counter[k] = uint32_t(keys[k] == most && most != SortKey<T>::all ? last : edges[k]);
    });
  }
};

// ---------------------------------------------------------------------------------------------------------------------

template <class Functor>
__global__ void __launch_bounds__(count_threads, 2)
    count_in_blocks(CounterFinder<Functor> finder, int32_t* counts, CountShape shape, int64_t blocks, int copies,
                    int levels) {
  using Finder = CounterFinder<Functor>;
  using Element = typename Finder::Element;
  using Read = ElementsRead<Element>;
  extern __shared__ __align__(16) char memory[];
  uint32_t* counters = reinterpret_cast<uint32_t*>(memory + Finder::bytes(levels));
  int bins = int(shape.bins);
  uint32_t* mine = counters + (threadIdx.x & (copies - 1));
  uint32_t count = uint32_t(shape.count), whole = count < Read::count ? 0 : count - Read::count + 1;
  for (int64_t job = blockIdx.x; job < shape.rows * blocks; job += gridDim.x) {
    int64_t row = job / blocks;
    for (int i = threadIdx.x; i < (bins + 2) * copies; i += count_threads) counters[i] = 0;
    finder.prepare(memory, row, levels);
    __syncthreads();
    // Reads are aligned: the first one may begin before the row.
    const Element* x = finder.functor.x + row * shape.count;
    uint32_t before = uint32_t(reinterpret_cast<uintptr_t>(x) / sizeof(Element) % Read::count);
    const Read* reads = reinterpret_cast<const Read*>(x - before);
    uint32_t end = (count + before + Read::count - 1) / Read::count, step = uint32_t(blocks) * count_threads;
    finder.run([&](auto find) {
      for (uint32_t at = uint32_t(job % blocks) * count_threads + threadIdx.x; at < end; at += step) {
        Read read;
        uint32_t first = at * Read::count - before, counter[Read::count];
        if (first < whole)
          read = reads[at];
        else
#pragma unroll
          for (int k = 0; k < Read::count; ++k) read.elements[k] = first + k < count ? x[first + k] : Finder::none();
        find(read.elements, counter);
#pragma unroll
        for (int k = 0; k < Read::count; ++k) atomicAdd(mine + counter[k] * copies, 1u);
      }
    });
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += count_threads) {
      uint32_t sum = 0;
      for (int i = 0; i < copies; ++i) sum += counters[(bin + 1) * copies + ((i + bin) & (copies - 1))];
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
  // A block has more elements than counters, if there are as many.
  int64_t elements =
      std::max<int64_t>(count_threads * ElementsRead<typename CounterFinder<Functor>::Element>::count, shape.bins);
  int64_t blocks = std::clamp<int64_t>(ceil_div(264, shape.rows), 1, ceil_div(shape.count, elements));
  unsigned grid = unsigned(std::min<int64_t>(shape.rows * blocks, 0x7fffffff));
  int levels = CounterFinder<Functor>::levels(shape.bins);
  int64_t bytes = CounterFinder<Functor>::bytes(levels), of_block = ceil_div(shape.count, blocks), copies = 1;
  if (shape.bins > most_counts || bytes > 65536) {
    count_in_memory<<<grid, count_threads, 0, executor.stream>>>(functor, counts, shape, blocks);
    return launched();
  }
  while (copies < 32 && 2 * copies * shape.bins <= std::min(roomy_counts, of_block)) copies *= 2;
  bytes += (shape.bins + 2) * copies * int64_t(sizeof(uint32_t));
  if (Status status = allow_shared_memory(count_in_blocks<Functor>, bytes); !status.ok()) return status;
  count_in_blocks<<<grid, count_threads, size_t(bytes), executor.stream>>>(CounterFinder<Functor>{functor}, counts,
                                                                           shape, blocks, int(copies), levels);
  return launched();
}

}  // namespace baracuda
