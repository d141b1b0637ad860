// Stores of what nobody reads here: the second-level cache lets go of it before others.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace baracuda {
namespace internal {

// Of a power of two of bytes, aligned to as many, or to 16 if there are more.
template <class Value>
__device__ void store_streaming(Value* to, const Value& value) {
  constexpr int bytes = sizeof(Value), count = bytes > 16 ? bytes / 16 : 1;
  // clang-format off
  using Word = std::conditional_t<bytes >= 16, uint4, std::conditional_t<bytes == 8, uint2,
               std::conditional_t<bytes == 4, uint32_t, std::conditional_t<bytes == 2, uint16_t, uint8_t>>>>;
  // clang-format on
  Word words[count];
  memcpy(words, &value, bytes);
#pragma unroll
  for (int i = 0; i < count; ++i) __stcs(reinterpret_cast<Word*>(to) + i, words[i]);
}

}  // namespace internal
}  // namespace baracuda
