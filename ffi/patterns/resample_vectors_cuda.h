// What the kernels of the resample pattern share: the size of a block, and neighbors that a thread has as a vector.
#pragma once

#include <algorithm>

#include "resample.h"

namespace baracuda {
namespace internal {

inline constexpr int resample_block = 256;

// Of an array of x and one of y; as many lanes as fit into so many bytes of either.
template <int bytes, class T, class U>
inline constexpr int resample_lanes = bytes / int(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));

// Whether 32 bits count the elements of x and of y.
inline bool resample_is_narrow(int64_t x, int64_t y) { return std::max(x, y) < narrow_reach; }

// V neighbors as words: nvcc moves 16-bit values that wait in registers one by one.
template <class T, int V>
struct Words {
  static constexpr int bytes = V * int(sizeof(T));
  using Word = std::conditional_t<(bytes < 4), uint16_t, uint32_t>;
  Vector<Word, bytes / int(sizeof(Word))> words;

  static __device__ Words read(const T* from) {
    return {load<bytes / int(sizeof(Word))>(reinterpret_cast<const Word*>(from))};
  }
  __device__ T lane(int v) const {
    T lanes[V];
    memcpy(lanes, &words, bytes);
    return lanes[v];
  }
};

}  // namespace internal
}  // namespace baracuda
