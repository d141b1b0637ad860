// Neighbors of a row in registers, as a CUDA thread loads them.
#pragma once

#include "../kernels/number.h"

namespace baracuda {
namespace internal {

// V neighbors as they are in memory: 16-bit floats in pairs, which wait for their load only where they are widened.
template <int V, class T>
struct Neighbors {
  static constexpr bool in_pairs = sizeof(T) == 2 && V % 2 == 0;
  using Word = std::conditional_t<in_pairs, uint32_t, T>;
  static constexpr int words = in_pairs ? V / 2 : V;
  Vector<Word, words> word;

  __device__ void read(const T* from) { word = load<words>(reinterpret_cast<const Word*>(from)); }
  __device__ Accumulator<T> operator[](int v) const {
    if constexpr (in_pairs) {
      uint32_t pair = word.lane[v / 2];
      if constexpr (std::is_same_v<T, BFloat16>) return bit_cast<float>(v % 2 ? pair & 0xffff0000u : pair << 16);
      T lane;
      lane.bits = uint16_t(v % 2 ? pair >> 16 : pair);
      return Accumulator<T>(lane);
    } else {
      return Accumulator<T>(word.lane[v]);
    }
  }
};

}  // namespace internal
}  // namespace baracuda
