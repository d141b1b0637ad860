// Where extrema of short rows are: reducers for tiles of rows (row_tiles_cuda.h). Load i of a lane is load
// first + i lanes of its row.
#pragma once

#include "arg_best_cuda.h"
#include "row_tiles_cuda.h"

namespace baracuda {
namespace internal {

// The smallest key of a row, and where it is first. A lane has its elements in their order.
template <class Search>
struct ArgOfTile {
  using Element = typename Search::Key;
  static constexpr uint32_t nowhere = ~0u;
  template <int>
  struct State {
    Element key;
    uint32_t at;
  };
  Search search;

  __device__ void none(State<1>& s) const { s.key = Element(~Element(0)), s.at = nowhere; }
  template <int V, int n, class Loaded>
  __device__ void push_at(State<1>& s, const Loaded& loaded, int first, int lanes) const {
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
      for (int k = 0; k < V; ++k) {
        Element key = search.key(loaded.load[i].lane[k]);
        if (key < s.key) s.key = key, s.at = uint32_t((first + i * lanes) * V + k);
      }
  }
  __device__ void merge(State<1>& s, const State<1>& other) const {
    if (other.key < s.key || (other.key == s.key && other.at < s.at)) s = other;
  }
  // No element is before the first, if none has a smaller key than the last.
  template <int>
  __device__ void finish(const State<1>& s, int64_t row) const {
    search.index[row] = s.at == nowhere ? 0 : int32_t(s.at);
  }
};

// The same of floats of 16 bits, two at a time.
template <class T, class Search>
struct ArgOfPairTile {
  using Element = uint16_t;
  using Best = BestPair<T>;
  template <int>
  using State = Best;
  Search search;

  __device__ void none(Best& s) const { s = Best{}; }
  template <int V, int n, class Loaded>
  __device__ void push_at(Best& s, const Loaded& loaded, int first, int lanes) const {
    const uint32_t turned = Best::turned(search), nothing = Best::infinity | (turned ^ Best::sign);
#pragma unroll
    for (int i = 0; i < n * V; i += 2) {
      auto position = [&](int i) { return uint32_t((first + i / V * lanes) * V + i % V); };
      uint32_t low = loaded.load[i / V].lane[i % V], high = nothing;
      if (i + 1 < n * V) high = loaded.load[(i + 1) / V].lane[(i + 1) % V];
      s.take_pair(low | high << 16, turned, position(i), position(i + 1));
    }
  }
  __device__ void merge(Best& s, const Best& other) const { s.merge(search, other); }
  template <int>
  __device__ void finish(const Best& s, int64_t row) const {
    search.index[row] = int32_t(s.found(search).at());
  }
};

template <class Key, class Search>
Status search_tiles(const Executor& executor, const Search& search, int64_t rows) {
  RowTiles<Key> tiles(rows, search.count);
  auto run = [&](const auto& reducer) { return reduce_row_tiles(executor, reducer, tiles, search.x); };
  if constexpr (sizeof(Key) == 2) {
    if (search.order.infinity == BestPair<BFloat16>::infinity) return run(ArgOfPairTile<BFloat16, Search>{search});
    if (search.order.infinity == BestPair<Half>::infinity) return run(ArgOfPairTile<Half, Search>{search});
  }
  return run(ArgOfTile<Search>{search});
}

}  // namespace internal
}  // namespace baracuda
