// Some elements of a sorted sequence in a block's shared memory, as a tree in the order of levels: nodes of one level
// lie side by side, so the lanes of a warp, each elsewhere in it, meet in few banks.
#pragma once

#include <algorithm>

#include "../kernels/search.h"

namespace baracuda {
namespace internal {

// The nodes 1 ... 2^levels - 1; the s-th of them from the left is the last element of range s of the sequence, which
// the search goes on in.
template <class T, bool right>
struct SearchTree {
  using Key = typename SortKey<T>::Key;
  static constexpr int one_read = 4;
  struct alignas(one_read * sizeof(T)) Read {
    T elements[one_read];
  };
  const T* sequence;
  int64_t count, range;
  Key* nodes;
  int levels;

  // The levels of the tree: at most so many, or one more where it is then the whole sequence.
  static int levels_of(int64_t count, int most) {
    int levels = 1;
    while (levels <= most && int64_t(1) << levels <= count) ++levels;
    if (count >> levels)
      for (levels = most; levels > 1 && int64_t(one_read) << (levels - 1) >= count;) --levels;
    return levels;
  }
  // The elements of a range: one, which its node is; otherwise as many reads as a power of two.
  static int64_t range_of(int64_t count, int levels) {
    if (count >> levels == 0) return 1;
    int64_t range = one_read;
    while (range << levels < count) range *= 2;
    return range;
  }

  __device__ void plant() const {
    for (int node = threadIdx.x + 1; node < 1 << levels; node += blockDim.x) {
      int level = 31 - __clz(node);
      int64_t from_left = ((2 * int64_t(node - (1 << level)) + 1) << (levels - 1 - level)) - 1;
      int64_t element = (from_left + 1) * range - 1;
      nodes[node] = element < count ? SortKey<T>::of(sequence[element], false) : SortKey<T>::all;
    }
  }
  static __device__ bool is_before(Key element, Key key) { return right ? element <= key : element < key; }

  // How many elements are before each key.
  template <int n>
  __device__ void find(const Key (&keys)[n], int (&found)[n]) const {
    descend(keys, found);
    if (range > 1)
#pragma unroll
      for (int k = 0; k < n; ++k)
        found[k] += int(Search<T>{sequence + found[k], min(range, count - found[k]), right}.of_key(keys[k]));
  }

  // The same where ranges are made of reads, which are aligned. All keys ask before the first needs an answer.
  template <int n>
  __device__ void find_by_reads(const Key (&keys)[n], int (&found)[n]) const {
    descend(keys, found);
    int elements = int(count);
    for (int half = int(range / 2); half >= one_read; half /= 2)
#pragma unroll
      for (int k = 0; k < n; ++k) {
        uint32_t next = min(uint32_t(found[k]) + half, uint32_t(elements));
        if (is_before(SortKey<T>::of(sequence[next - 1], false), keys[k])) found[k] = int(next);
      }
    // The sequence may end within a read.
    Read reads[n];
#pragma unroll
    for (int k = 0; k < n; ++k)
      if (found[k] <= elements - one_read)
        reads[k] = *reinterpret_cast<const Read*>(sequence + found[k]);
      else
#pragma unroll
        for (int i = 0; i < one_read; ++i)
          reads[k].elements[i] =
              i < elements - found[k] ? sequence[found[k] + i] : SortKey<T>::number(SortKey<T>::all, false);
#pragma unroll
    for (int k = 0; k < n; ++k) {
#pragma unroll
      for (int i = 0; i < one_read; ++i) found[k] += is_before(SortKey<T>::of(reads[k].elements[i], false), keys[k]);
      found[k] = min(found[k], elements);
    }
  }

 private:
  // Where each key's range begins. Its last element is the node after it, of which the key is known to be before; to
  // ask it again changes nothing.
  template <int n>
  __device__ void descend(const Key (&keys)[n], int (&first)[n]) const {
    // As addresses in shared memory: at becomes 2 at - root + (size if before), one addition of one of two numbers.
    uint32_t at[n], root = uint32_t(__cvta_generic_to_shared(nodes)), not_before = 0u - root;
    uint32_t before = not_before + uint32_t(sizeof(Key));
    asm("" : "+r"(before), "+r"(not_before));  // two numbers, of which one is chosen, and no sum
#pragma unroll
    for (int k = 0; k < n; ++k) at[k] = root + uint32_t(sizeof(Key));
    for (int level = 0; level < levels; ++level)
#pragma unroll
      for (int k = 0; k < n; ++k) {
        Key node = *static_cast<const Key*>(__cvta_shared_to_generic(at[k]));
        at[k] = 2 * at[k] + (is_before(node, keys[k]) ? before : not_before);
      }
#pragma unroll
    for (int k = 0; k < n; ++k) {
      uint32_t of_range = (at[k] - root) / uint32_t(sizeof(Key)) - (1u << levels);
      first[k] = int(min(of_range * uint32_t(range), uint32_t(count)));
    }
  }
};

}  // namespace internal
}  // namespace baracuda
