// The first few elements of a row's order, without sorting it. A block has a look at some of the elements: each thread
// at a few, of which it knows the first. At least k elements are not after the k-th of these firsts; all elements up
// to there are put into shared memory, and those up to the k-th of them are sorted. Where there is no room for so many
// the key of rank k - 1 is found by its digits. Where rows are few or very long they are cut, and what was first in
// each part is looked at again.
#pragma once

#include <algorithm>

#include "key_at_cuda.h"
#include "rank_by_bits_cuda.h"
#include "rank_by_digits_cuda.h"
#include "row_loads_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t most_top = 256;

// Where the first elements go: to the results, or to be looked at again. What a part has too few of comes last.
template <class Key>
struct TopResult {
  FirstElements<Key> out;
  Rows<Key> rows;

  __device__ void write(int64_t job, int64_t item, Key, int64_t position) const {
    out.write(job, item, rows.x[job * rows.count + position], position);
  }
};
template <class Key>
struct TopOfParts {
  Key* keys;
  int32_t* positions;
  int64_t items;

  __device__ void write(int64_t job, int64_t item, Key key, int64_t position) const {
    keys[job * items + item] = key;
    positions[job * items + item] = int32_t(position);
  }
};

template <class KeyType, class Result>
struct TopSearch {
  using Key = KeyType;
  using Element = KeyAt<Key>;
  static constexpr int threads = 256, ahead = std::min<int>(sizeof(Key), 2);
  using Loads = RowLoads<threads, Key>;
  using Digits = RankDigits<threads>;
  static constexpr int looks = std::max<int>(2, 8192 / threads / Loads::elements);  // of each thread
  static constexpr uint32_t room = 2048, best_room = 2 * most_top;
  static constexpr int looks_ahead = std::min(looks / 2, 2);
  static_assert(most_top <= threads && looks % looks_ahead == 0);

  struct Shared {
    uint32_t found, best_found, last_position;
    Key bound;
    bool has_enough;
    union {
      Key firsts[looks / looks_ahead * threads];
      typename Digits::Shared digits;
      struct {
        alignas(16) Element elements[room];
        Element best[best_room];
      };
    };
  };

  Rows<Key> rows;
  const int32_t* positions;  // where elements are from that were found before, or null
  Result result;
  int64_t parts, part;  // of a row, and how long they are
  int kept;

  __device__ void run(Shared& shared, int64_t job) const {
    int64_t row = job / parts;
    uint32_t begin = uint32_t(job % parts * part), end = uint32_t(min(int64_t(begin) + part, rows.count));
    Loads loads(rows.x + row * rows.count, begin, end);
    find_bound(shared, loads);
    collect(shared, loads, shared.bound, shared.last_position);
    if (shared.found > room) collect_exactly(shared, loads, begin, end);
    uint32_t found = shared.found;
    Element* elements = keep_best(shared, found);
    sort_in_block(elements, found);
    for (int item = threadIdx.x; item < kept; item += threads) {
      if (item < int(found)) {
        uint32_t at = elements[item].at();
        result.write(job, item, elements[item].key(), positions ? positions[row * rows.count + at] : at);
      } else {
        result.write(job, item, KeyOrder<Key>::all, 0);
      }
    }
    __syncthreads();
  }

 private:
  // A key which so many elements as are kept do not exceed, nor many more. Where many are kept a thread knows several
  // firsts.
  __device__ void find_bound(Shared& shared, const Loads& loads) const {
    int chunks = int(loads.chunks());
    bool several = kept > threads / 4;
    Key least = Key(~Key(0));
    uint32_t firsts = 0;
#pragma unroll 1
    for (int first = 0; first < looks && first < chunks; first += looks_ahead) {
      typename Loads::Load seen[looks_ahead];
      uint32_t numbers[looks_ahead];
      // From the first chunk to the last: a row may rise or fall.
#pragma unroll
      for (int k = first; k < first + looks_ahead; ++k)
        numbers[k - first] = chunks <= looks ? k : k * (chunks - 1) / (looks - 1);
      loads.load_chunks(numbers, seen);
#pragma unroll
      for (int k = 0; k < looks_ahead; ++k) {
        Key keys[Loads::elements];
        Loads::keys_of(rows.order, seen[k], keys);
        uint32_t mask = loads.mask(loads.position(loads.offset(numbers[k])));
#pragma unroll
        for (uint32_t j = 0; j < Loads::elements; ++j)
          if (keys[j] < least && mask >> j & 1) least = keys[j];
      }
      if (several) shared.firsts[firsts + threadIdx.x] = least, firsts += threads, least = Key(~Key(0));
    }
    if (!several) shared.firsts[threadIdx.x] = least, firsts = threads;
    __syncthreads();
    if (threadIdx.x < 32) {
      UpToRank<Key> bound(firsts, kept - 1, uint32_t(kept + 7) / 8, [&](uint32_t i) { return shared.firsts[i]; });
      if (threadIdx.x == 0) shared.bound = bound.last, shared.has_enough = bound.has_enough, shared.last_position = ~0u;
    }
    __syncthreads();
    if (!shared.has_enough) find_last_position(shared, loads);
  }

  // Of many elements with the key of the bound the first ones are enough: those of the chunks that have so many.
  __device__ void find_last_position(Shared& shared, const Loads& loads) const {
    Key bound = shared.bound;
    if (threadIdx.x == 0) shared.found = 0;
    __syncthreads();
    for (uint32_t number = 0, found = 0; number < loads.chunks() && found < uint32_t(kept); ++number) {
      auto load = loads.load(loads.offset(number));
      uint32_t position = loads.position(loads.offset(number)), mask = loads.mask(position), mine = 0;
      Key keys[Loads::elements];
      Loads::keys_of(rows.order, load, keys);
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j) mine += keys[j] == bound && mask >> j & 1;
      if (mine > 0) atomicAdd(&shared.found, mine);
      __syncthreads();
      found = shared.found;
      if (threadIdx.x == threads - 1 && found >= uint32_t(kept)) shared.last_position = position + Loads::elements - 1;
      __syncthreads();
    }
  }

  // Those up to the kept-th in a position of their own, if they are fewer; where they are, and how many.
  __device__ Element* keep_best(Shared& shared, uint32_t& found) const {
    if (found <= 64 || found <= uint32_t(kept)) return shared.elements;
    if (threadIdx.x < 32) {
      UpToRank<Key> bound(found, kept - 1, 1, [&](uint32_t i) { return shared.elements[i].key(); });
      if (threadIdx.x == 0) shared.bound = bound.last, shared.last_position = bound.values, shared.best_found = 0;
    }
    __syncthreads();
    Key last = shared.bound;
    uint32_t number = shared.last_position;
    if (number > best_room) return shared.elements;
    for (uint32_t i = threadIdx.x; i < found; i += threads) {
      Element element = shared.elements[i];
      if (element.key() <= last) shared.best[atomicAdd(&shared.best_found, 1u)] = element;
    }
    __syncthreads();
    found = number;
    return shared.best;
  }

  // Puts elements into shared memory whose keys are up to the bound, and their positions, if they have it. There may be
  // more than there is room for.
  __device__ void collect(Shared& shared, const Loads& loads, Key bound, uint32_t last_position) const {
    if (threadIdx.x == 0) shared.found = 0;
    __syncthreads();
    loads.template each<ahead>([&](const auto& load, uint32_t offset) {
      uint32_t position = loads.position(offset);
      Key keys[Loads::elements], least = Key(~Key(0));
      Loads::keys_of(rows.order, load, keys);
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j) least = keys[j] < least ? keys[j] : least;
      if (least > bound) return;
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j)
        if (keys[j] <= bound && loads.has(position + j) && (keys[j] < bound || position + j <= last_position)) {
          uint32_t at = atomicAdd(&shared.found, 1u);
          if (at < room) shared.elements[at] = Element(keys[j], position + j);
        }
    });
    __syncthreads();
  }

  __device__ void collect_exactly(Shared& shared, const Loads& loads, uint32_t begin, uint32_t end) const {
    auto each = [&](const auto& body) {
      loads.template each<ahead>([&](const auto& load, uint32_t offset) {
        Key keys[Loads::elements];
        Loads::keys_of(rows.order, load, keys);
        body(keys, loads.position(offset));
      });
    };
    uint32_t enough = room - kept;
    RankPrefix<Key> prefix(kept - 1, end - begin);
    Digits::narrow(shared.digits, prefix, enough, [&](const auto& body) {
      each([&](const auto& keys, uint32_t position) { body(keys, loads.mask(position)); });
    });
    RankPrefix<uint32_t> position(prefix.rank, prefix.left, end);
    Digits::narrow(shared.digits, position, enough, [&](const auto& body) {
      each([&](const auto& keys, uint32_t first) {
        uint32_t positions[Loads::elements], mask = loads.mask(first);
#pragma unroll
        for (uint32_t j = 0; j < Loads::elements; ++j) {
          positions[j] = first + j;
          if (!prefix.has(keys[j])) mask &= ~(1u << j);
        }
        body(positions, mask);
      });
    });
    collect(shared, loads, prefix.last(), position.last());
  }
};

template <class Search>
__global__ void __launch_bounds__(Search::threads, 5) find_top(Search search, int64_t jobs) {
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<typename Search::Shared*>(memory);
  for (int64_t job = blockIdx.x; job < jobs; job += gridDim.x) search.run(shared, job);
}

template <class Key, class Result>
Status find_top_of_parts(Executor executor, const Rows<Key>& rows, const int32_t* positions, const Result& result,
                         int64_t parts, int64_t part, int kept) {
  using Search = TopSearch<Key, Result>;
  constexpr int bytes = int(sizeof(typename Search::Shared));
  auto kernel = find_top<Search>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  int64_t jobs = rows.rows * parts;
  kernel<<<grid_of(jobs), Search::threads, bytes, executor.stream>>>(Search{rows, positions, result, parts, part, kept},
                                                                     jobs);
  return launched();
}

// How long parts of a row are: such that all blocks that run at a time have one, but long; and no longer than that the
// elements up to the first bound, about a fraction of kept / 8192, fit.
inline int64_t top_part(int64_t rows, int64_t count, int kept) {
  constexpr int64_t blocks = 132 * 4, shortest = 1 << 15;
  int64_t longest = std::min<int64_t>(1 << 17, (1 << 23) / kept);
  int64_t parts = std::max(std::min(ceil_div(blocks, rows), count / shortest), ceil_div(count, longest));
  return ceil_div(ceil_div(count, parts), 2048) * 2048;
}

// Takes a round more while a row has several parts. Later ones have keys for elements, and the positions that they are
// from.
template <class Key>
Status top_elements(Executor executor, const Rows<Key>& rows, const int32_t* positions, const TopResult<Key>& result,
                    int kept) {
  int64_t part = top_part(rows.rows, rows.count, kept), parts = ceil_div(rows.count, part), found = parts * kept;
  if (parts == 1) return find_top_of_parts(executor, rows, positions, result, 1, part, kept);
  Key* keys_of_parts = executor.scratch<Key>(rows.rows * found);
  int32_t* positions_of_parts = executor.scratch<int32_t>(rows.rows * found);
  if (!keys_of_parts || !positions_of_parts) return small_workspace;
  TopOfParts<Key> of_parts{keys_of_parts, positions_of_parts, kept};
  if (Status status = find_top_of_parts(executor, rows, positions, of_parts, parts, part, kept); !status.ok())
    return status;
  return top_elements(executor, Rows<Key>{keys_of_parts, rows.rows, found, {}}, positions_of_parts, result, kept);
}

}  // namespace internal
}  // namespace baracuda
