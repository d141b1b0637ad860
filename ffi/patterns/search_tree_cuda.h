// Some cells of a sorted sequence in a block's shared memory, as a tree in the order of levels: nodes of one level lie
// side by side, so the lanes of a warp, each elsewhere in it, meet in few banks.
#pragma once

#include <algorithm>

#include "../kernels/search.h"

namespace baracuda {
namespace internal {

// The nodes 1 ... 2^levels - 1; the s-th of them from the left is the last cell of stretch s of the sequence, which the
// search goes on in.
template <class T, bool right>
struct SearchTree {
  using Key = typename SortKey<T>::Key;
  const T* sequence;
  int64_t count, stretch;
  Key* nodes;
  int levels;

  // The stretches of a sequence of so many cells.
  static int64_t stretch_of(int64_t count, int levels) {
    int64_t stretches = int64_t(1) << levels;
    return std::max<int64_t>(1, (count + stretches - 1) / stretches);
  }

  __device__ void plant() const {
    for (int node = threadIdx.x + 1; node < 1 << levels; node += blockDim.x) {
      int level = 31 - __clz(node);
      int64_t from_left = ((2 * int64_t(node - (1 << level)) + 1) << (levels - 1 - level)) - 1;
      int64_t cell = (from_left + 1) * stretch - 1;
      nodes[node] = cell < count ? SortKey<T>::of(sequence[cell], false) : SortKey<T>::all;
    }
  }
  static __device__ bool is_before(Key cell, Key key) { return right ? cell <= key : cell < key; }

  // How many cells are before each key.
  template <int n>
  __device__ void find(const Key (&keys)[n], int (&found)[n]) const {
    int at[n];
#pragma unroll
    for (int k = 0; k < n; ++k) at[k] = 1;
    for (int level = 0; level < levels; ++level)
#pragma unroll
      for (int k = 0; k < n; ++k) at[k] = 2 * at[k] + is_before(nodes[at[k]], keys[k]);
    int last = (1 << levels) - 1;
#pragma unroll
    for (int k = 0; k < n; ++k) {
      int of_stretch = at[k] - (1 << levels);
      int64_t first = min(of_stretch * stretch, count);
      // No node ends the last stretch.
      int rest = int(min(stretch - (of_stretch < last), count - first));
      const T* cells = sequence + first;
      found[k] = int(first);
      if (stretch <= 4) {
#pragma unroll
        for (int i = 0; i < 4; ++i) found[k] += i < rest && is_before(SortKey<T>::of(cells[i], false), keys[k]);
      } else {
        found[k] += int(Search<T>{cells, rest, right}.of_key(keys[k]));
      }
    }
  }
};

}  // namespace internal
}  // namespace baracuda
