// Elements of a few ranks of a row, a block for each row, without sorting it. The first digits of all keys are counted
// once for all ranks. The elements of the digits in which these fall are few, mostly, and are put into shared memory,
// where one is found for each rank.
#pragma once

#include <algorithm>

#include "key_at_cuda.h"
#include "rank_by_digits_cuda.h"
#include "row_loads_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t most_ranks = 8;  // of a row, for which this is faster than to sort it

template <class KeyType>
struct RankSearch {
  using Key = KeyType;
  using Element = KeyAt<Key>;
  static constexpr int threads = 256, ahead = std::min<int>(sizeof(Key), 4);
  static constexpr uint32_t few = 4096;
  using Loads = RowLoads<threads, Key>;
  using Digits = RankDigits<threads>;

  struct Shared {
    typename Digits::Shared digits;
    RankDigit first[most_ranks];
    uint32_t ranks[most_ranks];
    uint32_t found;
    alignas(16) Element elements[few];
  };

  Rows<Key> rows;
  ElementsOfRanks<Key> out;

  __device__ void run(Shared& shared, int64_t row) const {
    uint32_t count = uint32_t(rows.count);
    Loads loads(rows.x + row * rows.count, 0, count);
    auto of_row = [&](const auto& body) {
      loads.template each<ahead>([&](const auto& load, uint32_t offset) {
        Key keys[Loads::elements];
        Loads::keys_of(rows.order, load, keys);
        uint32_t position = loads.position(offset);
        body(keys, position, loads.mask(position));
      });
    };
    auto found = [&](const auto& body) {
      for (uint32_t first = 0; first < shared.found; first += threads) {
        uint32_t i = first + threadIdx.x;
        Element element = shared.elements[min(i, few - 1)];
        Key keys[1] = {element.key()};
        body(keys, element.at(), uint32_t(i < shared.found));
      }
    };
    int items = int(out.items);
    if (int(threadIdx.x) < items) shared.ranks[threadIdx.x] = uint32_t(out.rank(row, threadIdx.x));
    RankPrefix<Key> nothing(0, count);
    Digits::count(shared.digits, nothing, keys_of(of_row));
    Digits::find(shared.digits, items, [&](int item) { return shared.ranks[item]; }, shared.first);
    for (int item = 0, next; item < items; item = next) {
      next = together(shared, item, items);
      if (shared.first[item].left <= few) {
        collect(shared, loads, nothing.shift(), next - item, [&](int i) { return Key(shared.first[item + i].digit); });
        for (int i = item; i < next; ++i) {
          RankPrefix<Key> prefix = nothing;
          shared.first[i].add_to(prefix);
          finish(shared, row, i, prefix, found);
        }
        continue;
      }
      RankPrefix<Key> prefix = nothing;
      shared.first[item].add_to(prefix);
      Digits::narrow(shared.digits, prefix, few, keys_of(of_row));
      if (prefix.left <= few) {
        collect(shared, loads, prefix.end, 1, [&](int) { return Key(prefix.found >> prefix.end); });
        finish(shared, row, item, prefix, found);
      } else {
        finish(shared, row, item, prefix, of_row);
      }
    }
    __syncthreads();
  }

 private:
  // `each` calls a body(keys, the position of the first, a bit for each of them that there is).
  template <class Each>
  static __device__ auto keys_of(const Each& each) {
    return [&](const auto& body) { each([&](const auto& keys, uint32_t, uint32_t mask) { body(keys, mask); }); };
  }

  // The rank up to which the elements of their first digits are few.
  __device__ int together(const Shared& shared, int item, int items) const {
    uint32_t elements = shared.first[item].left;
    int next = item + 1;
    for (; next < items; ++next) {
      bool is_new = true;
      for (int i = item; i < next; ++i) is_new &= shared.first[i].digit != shared.first[next].digit;
      if (is_new) elements += shared.first[next].left;
      if (elements > few) break;
    }
    return next;
  }

  // Puts the elements whose keys begin in one of so many ways into shared memory.
  template <class Wanted>
  __device__ void collect(Shared& shared, const Loads& loads, int shift, int ways, const Wanted& wanted) const {
    if (threadIdx.x == 0) shared.found = 0;
    __syncthreads();
    loads.template each<ahead>([&](const auto& load, uint32_t offset) {
      uint32_t position = loads.position(offset);
      Key keys[Loads::elements];
      uint32_t hits = 0;
      Loads::keys_of(rows.order, load, keys);
      for (int way = 0; way < ways; ++way) {
        Key begins = wanted(way);
#pragma unroll
        for (uint32_t j = 0; j < Loads::elements; ++j) hits |= uint32_t(Key(keys[j] >> shift) == begins) << j;
      }
      if (hits) hits &= loads.mask(position);
      if (!hits) return;
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j)
        if (hits >> j & 1) shared.elements[atomicAdd(&shared.found, 1u)] = Element(keys[j], position + j);
    });
    __syncthreads();
  }

  // The element of a rank: of elements with one key, by their positions.
  template <class Each>
  __device__ void finish(Shared& shared, int64_t row, int64_t item, RankPrefix<Key> prefix, const Each& each) const {
    Digits::narrow(shared.digits, prefix, 1, keys_of(each));
    RankPrefix<uint32_t> position(prefix.rank, prefix.left, uint32_t(rows.count));
    Digits::narrow(shared.digits, position, 1, [&](const auto& body) {
      each([&]<int n>(const Key(&keys)[n], uint32_t at, uint32_t mask) {
        uint32_t positions[n];
#pragma unroll
        for (int j = 0; j < n; ++j) {
          positions[j] = at + j;
          if (!prefix.has(keys[j])) mask &= ~(1u << j);
        }
        body(positions, mask);
      });
    });
    auto write = [&](uint32_t at) { out.write(row, item, rows.x[row * rows.count + at], at); };
    if (position.end == 0) {
      if (threadIdx.x == 0) write(position.found);
    } else {
      each([&]<int n>(const Key(&keys)[n], uint32_t at, uint32_t mask) {
#pragma unroll
        for (int j = 0; j < n; ++j)
          if (mask >> j & 1 && prefix.has(keys[j]) && position.has(at + j)) write(at + j);
      });
    }
    __syncthreads();
  }
};

template <class Key>
__global__ void __launch_bounds__(RankSearch<Key>::threads, 4) find_ranks(RankSearch<Key> search) {
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<typename RankSearch<Key>::Shared*>(memory);
  for (int64_t row = blockIdx.x; row < search.rows.rows; row += gridDim.x) search.run(shared, row);
}

template <class Key>
Status select_by_counts(Executor executor, const Rows<Key>& rows, const ElementsOfRanks<Key>& out) {
  using Search = RankSearch<Key>;
  constexpr int bytes = int(sizeof(typename Search::Shared));
  if (Status status = allow_shared_memory(find_ranks<Key>, bytes); !status.ok()) return status;
  find_ranks<<<grid_of(rows.rows), Search::threads, bytes, executor.stream>>>(Search{rows, out});
  return launched();
}

}  // namespace internal
}  // namespace baracuda
