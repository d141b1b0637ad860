// Where extrema are, on a CUDA grid. Few lines are cut into parts, each of which leaves its best.
#pragma once

#include <algorithm>
#include <cub/block/block_reduce.cuh>

#include "executor.h"
#include "key_at_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int arg_block = 256, arg_ahead = 8;

struct EarlierKey {
  template <class Cell>
  __device__ Cell operator()(const Cell& a, const Cell& b) const {
    return b < a ? b : a;
  }
};

// Lines of x [outer, count, inner], whose smallest keys are sought.
template <class KeyType>
struct ArgSearch {
  using Key = KeyType;
  using Cell = KeyAt<Key>;
  const Key* x;
  int64_t outer, count, inner, parts;
  KeyOrder<Key> order;
  Key shift;  // which makes of the last key, NaN, the first
  int32_t* index;
  Cell* bests;  // [outer, parts, inner], where there are several parts

  __device__ int64_t part() const { return (count + parts - 1) / parts; }
  // The best of a line's cells first, first + step, ... below end; none if there are none.
  __device__ Cell best(const Key* line, int64_t first, int64_t end, uint32_t step) const {
    Key best = Key(~Key(0));
    uint32_t at = ~0u, last = uint32_t(end);
    const int64_t stride = step * inner;
    line += first * inner;
    for (uint32_t i = uint32_t(first); i < last; i += arg_ahead * step, line += arg_ahead * stride) {
      Key bits[arg_ahead];
#pragma unroll
      for (int k = 0; k < arg_ahead; ++k)
        if (i + k * step < last) bits[k] = line[k * stride];
#pragma unroll
      for (int k = 0; k < arg_ahead; ++k)
        if (i + k * step < last)
          if (Key key = Key(order.of(bits[k]) + shift); key < best || at == ~0u) best = key, at = i + k * step;
    }
    return Cell(best, at);
  }
  __device__ void write(int64_t o, int64_t part, int64_t column, const Cell& best) const {
    if (parts == 1)
      index[o * inner + column] = int32_t(best.at());
    else
      bests[(o * parts + part) * inner + column] = best;
  }
};

// A warp, or a block, for each part of a row.
template <int threads, class Search>
__global__ void __launch_bounds__(arg_block) arg_of_rows(Search search) {
  using Cell = typename Search::Cell;
  using Reduce = cub::BlockReduce<Cell, arg_block>;
  __shared__ typename Reduce::TempStorage memory;
  constexpr int teams = arg_block / threads;
  int64_t jobs = search.outer * search.parts, part = search.part();
  for (int64_t job = int64_t(blockIdx.x) * teams + threadIdx.x / threads; job < jobs;
       job += int64_t(gridDim.x) * teams) {
    int64_t row = job / search.parts, begin = job % search.parts * part;
    Cell best = search.best(search.x + row * search.count, begin + threadIdx.x % threads,
                            min(begin + part, search.count), threads);
    if constexpr (threads == arg_block) {
      best = Reduce(memory).Reduce(best, EarlierKey{});
      __syncthreads();
    } else {
#pragma unroll
      for (int lane = 16; lane > 0; lane /= 2) best = EarlierKey{}(best, best.of_lane(lane));
    }
    if (threadIdx.x % threads == 0) search.write(row, job % search.parts, 0, best);
  }
}

// A thread for each part of a column.
template <class Search>
__global__ void __launch_bounds__(arg_block) arg_of_columns(Search search) {
  int64_t jobs = search.outer * search.parts * search.inner, part = search.part();
  for (int64_t job = int64_t(blockIdx.x) * arg_block + threadIdx.x; job < jobs; job += int64_t(gridDim.x) * arg_block) {
    int64_t column = job % search.inner, o = job / search.inner / search.parts, p = job / search.inner % search.parts;
    search.write(o, p, column,
                 search.best(search.x + o * search.count * search.inner + column, p * part,
                             min((p + 1) * part, search.count), 1));
  }
}

template <class Search>
__global__ void __launch_bounds__(arg_block) arg_of_parts(Search search) {
  int64_t jobs = search.outer * search.inner;
  for (int64_t job = int64_t(blockIdx.x) * arg_block + threadIdx.x; job < jobs; job += int64_t(gridDim.x) * arg_block) {
    int64_t column = job % search.inner, o = job / search.inner;
    auto best = search.bests[o * search.parts * search.inner + column];
    for (int64_t p = 1; p < search.parts; ++p)
      best = EarlierKey{}(best, search.bests[(o * search.parts + p) * search.inner + column]);
    search.index[job] = int32_t(best.at());
  }
}

inline unsigned arg_blocks(int64_t threads) {
  return unsigned(std::min<int64_t>(ceil_div(threads, arg_block), 132 * 64));
}

template <class Key>
Status arg_of_lines(Executor executor, ArgSearch<Key> search) {
  int64_t lines = search.outer * search.inner;
  if (lines == 0) return {};
  // Parts that fill the device, but are long enough to be worth it, and have room in the workspace.
  bool rows = search.inner == 1;
  int64_t most = rows ? 132 * 8 : 132 * 4096, shortest = rows ? 4096 : 64;
  int64_t room = int64_t(executor.workspace_bytes / sizeof(KeyAt<Key>)) / lines;
  search.parts = std::max<int64_t>(1, std::min({ceil_div(most, lines), search.count / shortest, room}));
  search.parts = ceil_div(search.count, ceil_div(search.count, search.parts));
  if (search.parts > 1) search.bests = executor.scratch<KeyAt<Key>>(lines * search.parts);
  if (search.parts > 1 && !search.bests) return small_workspace;
  if (!rows)
    arg_of_columns<<<arg_blocks(lines * search.parts), arg_block, 0, executor.stream>>>(search);
  else if (search.count <= 1024)
    arg_of_rows<32><<<arg_blocks(lines * 32), arg_block, 0, executor.stream>>>(search);
  else
    arg_of_rows<arg_block><<<arg_blocks(lines * search.parts * arg_block), arg_block, 0, executor.stream>>>(search);
  if (search.parts > 1) arg_of_parts<<<arg_blocks(lines), arg_block, 0, executor.stream>>>(search);
  return launched();
}

}  // namespace internal

template <class T, bool is_max>
Status argextremum(Executor executor, const T* x, int32_t* index, int64_t outer, int64_t count, int64_t inner) {
  using Key = typename SortKey<T>::Key;
  internal::ArgSearch<Key> search{reinterpret_cast<const Key*>(x), outer, count,  inner, 1, SortKey<T>::order(is_max),
                                  Key(is_float<T> && !is_max),     index, nullptr};
  return internal::arg_of_lines(executor, search);
}

}  // namespace baracuda
