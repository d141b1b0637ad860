// The first few cells of a row's order, without sorting it. A block goes along the row with a bound, and keeps what
// comes before it. The first bound is from the first cells: of those each thread has some, and knows the first of them;
// at least k cells are not behind the k-th of these firsts. When many cells are kept they are sorted, and the k-th of
// them is the next bound. Where rows are few they are cut, and what was first in each part is looked at again.
#pragma once

#include <algorithm>

#include "key_at_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t most_top = 256;

// Where keys are from: rows themselves, or the first cells of their parts.
template <class Key>
struct RowCells : Rows<Key> {
  __device__ int64_t place(int64_t row, int64_t i) const { return i; }
};
template <class KeyType>
struct FoundCells {
  using Key = KeyType;
  const Key* keys;
  const int32_t* places;
  int64_t rows, count;

  struct Row {
    const Key* keys;

    __device__ Key key(uint32_t i) const { return keys[i]; }
  };

  __device__ Row row(int64_t row) const { return {keys + row * count}; }
  __device__ int64_t place(int64_t row, int64_t i) const { return places[row * count + i]; }
};

// Where the first cells go: to the results, or to be looked at again. What a part has too few of comes last.
template <class Key>
struct TopResult {
  FirstCells<Key> out;
  Rows<Key> rows;

  __device__ void write(int64_t job, int64_t item, Key, int64_t place) const {
    out.write(job, item, rows.x[job * rows.count + place], place);
  }
};
template <class Key>
struct TopOfParts {
  Key* keys;
  int32_t* places;
  int64_t items;

  __device__ void write(int64_t job, int64_t item, Key key, int64_t place) const {
    keys[job * items + item] = key;
    places[job * items + item] = int32_t(place);
  }
};

template <class Source, class Result>
struct TopSearch {
  using Key = typename Source::Key;
  using Cell = KeyAt<Key>;
  static constexpr int threads = 256, items = 8, chunk = threads * items;
  static_assert(most_top <= threads);

  struct Shared {
    uint32_t found;
    alignas(16) Cell cells[1];  // `room`
  };

  Source source;
  Result result;
  int64_t parts, part;  // of a row, and how long they are
  int kept;

  // Cells are sorted when there are more than this, and one chunk more may come before they are.
  int many() const { return kept + 512; }
  int room() const {
    int room = 2;
    while (room < many() + chunk) room *= 2;
    return room;
  }

  __device__ void run(Shared& shared, int64_t job, int many) const {
    int64_t row = job / parts;
    uint32_t begin = uint32_t(job % parts * part), end = uint32_t(min(int64_t(begin) + part, source.count));
    auto cells = source.row(row);
    if (threadIdx.x == 0) shared.found = 0;
    __syncthreads();
    Key bound = Key(~Key(0));  // so many cells as are kept have been met up to it
    for (uint32_t first = begin; first < end; first += chunk) {
      uint32_t mine = first + threadIdx.x;
      Key keys[items], least = Key(~Key(0));
#pragma unroll
      for (int k = 0; k < items; ++k) keys[k] = mine + k * threads < end ? cells.key(mine + k * threads) : Key(~Key(0));
      if (first == begin) {
#pragma unroll
        for (int k = 0; k < items; ++k) least = keys[k] < least ? keys[k] : least;
        bound = last_of_firsts(least);
      }
      // Of equal cells those are first that were met first.
      if (first != begin && bound == 0) break;
      Key last = first == begin ? bound : Key(bound - 1);
#pragma unroll
      for (int k = 0; k < items; ++k)
        if (keys[k] <= last && mine + k * threads < end)
          shared.cells[atomicAdd(&shared.found, 1u)] = Cell(keys[k], mine + k * threads);
      __syncthreads();
      uint32_t found = shared.found;
      if (found > uint32_t(many)) bound = keep_first(shared, found);
      __syncthreads();
    }
    keep_first(shared, shared.found);
    __syncthreads();
    for (int item = threadIdx.x; item < kept; item += threads) {
      if (item < int(shared.found)) {
        uint32_t at = shared.cells[item].at();
        result.write(job, item, cells.key(at), source.place(row, at));
      } else {
        result.write(job, item, KeyOrder<Key>::all, 0);
      }
    }
    __syncthreads();
  }

 private:
  // Sorts what was found, and keeps so many; the last of these.
  __device__ Key keep_first(Shared& shared, uint32_t found) const {
    sort_in_block(shared.cells, found);
    found = min(found, uint32_t(kept));
    if (threadIdx.x == 0) shared.found = found;
    return shared.cells[found - 1].key();
  }
  // The kept-th smallest of the threads' firsts: bit by bit, from the highest.
  __device__ Key last_of_firsts(Key first) const {
    Key bound = 0;
    for (int bit = 8 * sizeof(Key) - 1; bit >= 0; --bit) {
      Key next = bound | Key(Key(1) << bit);
      if (__syncthreads_count(first < next) < kept) bound = next;
    }
    return bound;
  }
};

template <class Search>
__global__ void __launch_bounds__(Search::threads, 6) find_top(Search search, int64_t jobs, int many) {
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<typename Search::Shared*>(memory);
  for (int64_t job = blockIdx.x; job < jobs; job += gridDim.x) search.run(shared, job, many);
}

template <class Source, class Result>
Status find_top_of_parts(Executor executor, const Source& source, const Result& result, int64_t parts, int kept) {
  using Search = TopSearch<Source, Result>;
  int64_t part = ceil_div(ceil_div(source.count, parts), Search::chunk) * Search::chunk;
  Search search{source, result, parts, part, kept};
  size_t bytes = sizeof(typename Search::Shared) + size_t(search.room()) * sizeof(typename Search::Cell);
  auto kernel = find_top<Search>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  int64_t jobs = source.rows * parts;
  kernel<<<grid_of(jobs), Search::threads, bytes, executor.stream>>>(search, jobs, search.many());
  return launched();
}

// Parts of a row: enough for all blocks that run at a time, but long ones.
inline int64_t top_parts(int64_t rows, int64_t count) {
  constexpr int64_t blocks = 132 * 6, shortest = 1 << 15;
  int64_t parts = std::max<int64_t>(1, std::min(ceil_div(blocks, rows), count / shortest));
  int64_t part = ceil_div(ceil_div(count, parts), 2048) * 2048;
  return ceil_div(count, part);
}

// Takes a round more while a row has several parts.
template <class Source, class Key>
Status top_cells(Executor executor, const Source& source, const TopResult<Key>& result, int kept) {
  int64_t parts = top_parts(source.rows, source.count), found = parts * kept;
  if (parts == 1) return find_top_of_parts(executor, source, result, 1, kept);
  Key* keys = executor.scratch<Key>(source.rows * found);
  int32_t* places = executor.scratch<int32_t>(source.rows * found);
  if (!keys || !places) return small_workspace;
  Status status = find_top_of_parts(executor, source, TopOfParts<Key>{keys, places, kept}, parts, kept);
  if (!status.ok()) return status;
  return top_cells(executor, FoundCells<Key>{keys, places, source.rows, found}, result, kept);
}

}  // namespace internal
}  // namespace baracuda
