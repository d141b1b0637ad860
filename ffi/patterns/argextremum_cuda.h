// Where extrema are, on a CUDA grid. Few slices are cut into parts, each of which leaves its best.
#pragma once

#include <algorithm>
#include <cub/block/block_reduce.cuh>

#include "arg_best_cuda.h"
#include "arg_tiles_cuda.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int arg_block = 256, arg_ahead = 8;

struct EarlierKey {
  template <class Element>
  __device__ Element operator()(const Element& a, const Element& b) const {
    return b < a ? b : a;
  }
};

// Slices of x [outer, count, inner], whose smallest keys are sought.
template <class KeyType>
struct ArgSearch {
  using Key = KeyType;
  using Element = KeyAt<Key>;
  const Key* x;
  int64_t outer, count, inner, parts;
  KeyOrder<Key> order;
  Key shift;  // which makes of the last key, NaN, the first
  int32_t* index;
  Element* bests;  // [outer, parts, inner], where there are several parts

  __device__ int64_t part() const { return (count + parts - 1) / parts; }
  __device__ Key key(Key bits) const { return Key(order.of(bits) + shift); }
  // The best of the elements begin ... end - 1 of a column.
  __device__ Element best_of_column(const Key* column, int64_t begin, int64_t end) const {
    Key best = Key(~Key(0));
    uint32_t at = uint32_t(begin), last = uint32_t(end);  // no element is before the first, if none has another key
    column += begin * inner;
    for (uint32_t i = uint32_t(begin); i < last; i += arg_ahead, column += arg_ahead * inner) {
      Key bits[arg_ahead];
#pragma unroll
      for (int k = 0; k < arg_ahead; ++k)
        if (i + k < last) bits[k] = column[k * inner];
#pragma unroll
      for (int k = 0; k < arg_ahead; ++k)
        if (i + k < last)
          if (Key other = key(bits[k]); other < best) best = other, at = i + k;
    }
    return Element(best, at);
  }
  __device__ void write(int64_t o, int64_t part, int64_t column, const Element& best) const {
    if (parts == 1)
      index[o * inner + column] = int32_t(best.at());
    else
      bests[(o * parts + part) * inner + column] = best;
  }
};

// A warp, or a block, for each part of a row. It finds the load that has the best element first, and then the element.
template <int threads, class Best, class Search>
__global__ void __launch_bounds__(arg_block, 4) arg_of_rows(Search search) {
  using Key = typename Search::Key;
  using Element = typename Search::Element;
  using Loads = RowLoads<threads, Key>;
  using Reduce = cub::BlockReduce<Element, arg_block>;
  __shared__ typename Reduce::TempStorage memory;
  constexpr int teams = arg_block / threads;
  int64_t jobs = search.outer * search.parts, part = search.part();
  for (int64_t job = int64_t(blockIdx.x) * teams + threadIdx.x / threads; job < jobs;
       job += int64_t(gridDim.x) * teams) {
    int64_t row = job / search.parts, begin = job % search.parts * part;
    Loads loads(search.x + row * search.count, uint32_t(begin), uint32_t(min(begin + part, search.count)));
    Best kept;
    loads.template each<Best::ahead>([&](const auto& load, uint32_t offset) {
      kept.template take<Loads>(search, load, loads.mask(loads.position(offset)), offset);
    });
    Element best = kept.found(search);
    if constexpr (threads == arg_block) {
      best = Reduce(memory).Reduce(best, EarlierKey{});
      __syncthreads();
    } else {
#pragma unroll
      for (int lane = 16; lane > 0; lane /= 2) best = EarlierKey{}(best, best.of_lane(lane));
    }
    if (threadIdx.x % threads == 0) {
      uint32_t position = loads.position(best.at());
      while (!loads.has(position) || search.key(search.x[row * search.count + position]) != best.key()) ++position;
      search.write(row, job % search.parts, 0, Element(best.key(), position));
    }
  }
}

// A thread for each part of a column.
template <class Search>
__global__ void __launch_bounds__(arg_block) arg_of_columns(Search search) {
  int64_t jobs = search.outer * search.parts * search.inner, part = search.part();
  for (int64_t job = int64_t(blockIdx.x) * arg_block + threadIdx.x; job < jobs; job += int64_t(gridDim.x) * arg_block) {
    using Key = typename Search::Key;
    int64_t column = job % search.inner, o = job / search.inner / search.parts, p = job / search.inner % search.parts;
    const Key* first = search.x + o * search.count * search.inner + column;
    search.write(o, p, column, search.best_of_column(first, p * part, min((p + 1) * part, search.count)));
  }
}

// So many threads for the parts of each slice.
template <int threads, class Search>
__global__ void __launch_bounds__(arg_block) arg_of_parts(Search search) {
  constexpr int teams = arg_block / threads;
  int64_t jobs = search.outer * search.inner;
  for (int64_t job = int64_t(blockIdx.x) * teams + threadIdx.x / threads; job < jobs;
       job += int64_t(gridDim.x) * teams) {
    const auto* bests = search.bests + job / search.inner * search.parts * search.inner + job % search.inner;
    auto best = bests[0];
#pragma unroll 4
    for (int64_t p = threadIdx.x % threads; p < search.parts; p += threads)
      best = EarlierKey{}(best, bests[p * search.inner]);
#pragma unroll
    for (int lane = threads / 2; lane > 0; lane /= 2) best = EarlierKey{}(best, best.of_lane(lane));
    if (threadIdx.x % threads == 0) search.index[job] = int32_t(best.at());
  }
}

inline unsigned arg_blocks(int64_t threads) {
  return unsigned(std::min<int64_t>(ceil_div(threads, arg_block), 132 * 64));
}

template <class Best, class Key>
void search_rows(const Executor& executor, const ArgSearch<Key>& search) {
  // Where rows are many, a warp has a long one too.
  const int64_t longest_of_warp = search.outer >= 132 * 64   ? 65536
                                  : search.outer >= 132 * 16 ? 16384 / int(sizeof(Key))
                                                             : 1024;
  if (search.count <= longest_of_warp && search.parts == 1)
    arg_of_rows<32, Best><<<arg_blocks(search.outer * 32), arg_block, 0, executor.stream>>>(search);
  else
    arg_of_rows<arg_block, Best>
        <<<arg_blocks(search.outer * search.parts * arg_block), arg_block, 0, executor.stream>>>(search);
}

template <class Key>
void search_rows(const Executor& executor, const ArgSearch<Key>& search) {
  if constexpr (sizeof(Key) == 2) {
    if (search.order.infinity == BestPair<BFloat16>::infinity) return search_rows<BestPair<BFloat16>>(executor, search);
    if (search.order.infinity == BestPair<Half>::infinity) return search_rows<BestPair<Half>>(executor, search);
  }
  search_rows<BestKey<Key>>(executor, search);
}

template <class Key>
Status arg_of_slices(Executor executor, ArgSearch<Key> search) {
  int64_t slices = search.outer * search.inner;
  if (slices == 0) return {};
  bool rows = search.inner == 1;
  if (rows && RowTiles<Key>::fit(slices, search.count)) return search_tiles<Key>(executor, search, slices);
  // Parts that fill the device, but are long enough to be worth it, and have room in the workspace.
  int64_t most = rows ? 132 * 8 : 132 * 4096, shortest = rows ? 4096 : 64;
  int64_t room = int64_t(executor.workspace_bytes / sizeof(KeyAt<Key>)) / slices;
  search.parts = std::max<int64_t>(1, std::min({ceil_div(most, slices), search.count / shortest, room}));
  search.parts = ceil_div(search.count, ceil_div(search.count, search.parts));
  if (search.parts > 1) search.bests = executor.scratch<KeyAt<Key>>(slices * search.parts);
  if (search.parts > 1 && !search.bests) return small_workspace;
  if (rows)
    search_rows(executor, search);
  else
    arg_of_columns<<<arg_blocks(slices * search.parts), arg_block, 0, executor.stream>>>(search);
  if (search.parts >= 32)
    arg_of_parts<32><<<arg_blocks(slices * 32), arg_block, 0, executor.stream>>>(search);
  else if (search.parts > 1)
    arg_of_parts<1><<<arg_blocks(slices), arg_block, 0, executor.stream>>>(search);
  return launched();
}

}  // namespace internal

template <class T>
Status argextremum(Executor executor, const T* x, int32_t* index, int64_t outer, int64_t count, int64_t inner,
                   bool is_max) {
  using Key = typename SortKey<T>::Key;
  internal::ArgSearch<Key> search{reinterpret_cast<const Key*>(x), outer, count,  inner, 1, SortKey<T>::order(is_max),
                                  Key(is_float<T> && !is_max),     index, nullptr};
  return internal::arg_of_slices(executor, search);
}

}  // namespace baracuda
