// Stores to shared memory. `store` of kernels/number.h writes to global memory alone.
#pragma once

#include <cstring>
#include <type_traits>

#include "../kernels/number.h"

namespace baracuda {
namespace internal {

// V neighbors, 16 bytes at a time, or 8.
template <int V, class T>
__device__ void store_shared(T* to, const Vector<T, V>& value) {
  using Word = std::conditional_t<sizeof(value) % 16 == 0, uint4, uint2>;
  static_assert(sizeof(value) % sizeof(Word) == 0);
  constexpr int some = sizeof(Word) / sizeof(T);
#pragma unroll
  for (int k = 0; k < V; k += some) {
    Word word;
    memcpy(&word, value.lane + k, sizeof(word));
    *reinterpret_cast<Word*>(to + k) = word;
  }
}

}  // namespace internal
}  // namespace baracuda
