// Keys with the positions that they are from.
#pragma once

#include <cstdint>

#include "../kernels/sort_key.h"

namespace baracuda {
namespace internal {

// A key and where it is from, which makes all different, and the sort stable.
template <class Key, bool wide = sizeof(Key) == 8>
struct KeyAt {
  uint64_t both;

  KeyAt() = default;
  __device__ KeyAt(Key key, uint32_t at) : both(uint64_t(key) << 32 | at) {}
  __device__ Key key() const { return Key(both >> 32); }
  __device__ uint32_t at() const { return uint32_t(both); }
  __device__ bool operator<(const KeyAt& other) const { return both < other.both; }
  __device__ KeyAt of_lane(int mask) const {
    KeyAt other;
    other.both = __shfl_xor_sync(~0u, both, mask);
    return other;
  }
};
template <class Key>
struct KeyAt<Key, true> {
  uint64_t high;
  uint32_t low;

  KeyAt() = default;
  __device__ KeyAt(Key key, uint32_t at) : high(key), low(at) {}
  __device__ Key key() const { return high; }
  __device__ uint32_t at() const { return low; }
  __device__ bool operator<(const KeyAt& other) const {
    return high < other.high || (high == other.high && low < other.low);
  }
  __device__ KeyAt of_lane(int mask) const {
    return {__shfl_xor_sync(~0u, high, mask), __shfl_xor_sync(~0u, low, mask)};
  }
};

// Sorts so many elements in shared memory, by all threads of the block: a bitonic network. There is room for as many as
// the next power of two. A warp sorts a few alone, which then wait for no others.
template <class Key>
__device__ void sort_in_block(KeyAt<Key>* elements, uint32_t found) {
  uint32_t size = 2;
  while (size < found) size *= 2;
  bool alone = size <= 64;
  uint32_t threads = alone ? 32 : blockDim.x;
  auto wait = [&] { alone ? __syncwarp() : __syncthreads(); };
  if (threadIdx.x < threads) {
    for (uint32_t i = found + threadIdx.x; i < size; i += threads) elements[i] = KeyAt<Key>(Key(~Key(0)), ~0u);
    wait();
    for (uint32_t run = 2; run <= size; run *= 2)
      for (uint32_t step = run / 2; step > 0; step /= 2) {
        for (uint32_t pair = threadIdx.x; pair < size / 2; pair += threads) {
          uint32_t i = 2 * pair - (pair & (step - 1)), j = i + step;
          KeyAt<Key> a = elements[i], b = elements[j];
          bool ascending = (i & run) == 0;
          if (ascending ? b < a : a < b) elements[i] = b, elements[j] = a;
        }
        wait();
      }
  }
  __syncthreads();
}

}  // namespace internal
}  // namespace baracuda
