// A range of a row as a block or a warp reads it: 16 bytes a load, wherever the row begins.
#pragma once

#include "../kernels/sort_key.h"

namespace baracuda {
namespace internal {

// Loads of neighboring elements, of which each thread has one in every chunk. They begin where memory is aligned, so
// that the first may have elements before the range, and the last after it: these are 0, and not in the range.
template <int threads, class Key>
struct RowLoads {
  static constexpr uint32_t elements = 16 / sizeof(Key), chunk = threads * elements, whole = (1u << elements) - 1;
  using Load = Vector<Key, elements>;

  const Key* from;
  uint32_t begin, before, length;

  __device__ RowLoads(const Key* row, uint32_t begin, uint32_t end) : begin(begin) {
    before = uint32_t(reinterpret_cast<uintptr_t>(row + begin) % 16 / sizeof(Key));
    from = row + begin - before, length = end - begin + before;
  }
  __device__ uint32_t chunks() const { return (length + chunk - 1) / chunk; }
  __device__ uint32_t offset(uint32_t number) const { return number * chunk + threadIdx.x % threads * elements; }
  // The position of a load's first element.
  __device__ uint32_t position(uint32_t offset) const { return begin - before + offset; }
  __device__ bool has(uint32_t position) const { return position - begin < length - before; }
  // A bit for each element of a load, the first of which has this position: whether it is in the range.
  __device__ uint32_t mask(uint32_t position) const {
    if (has(position) && has(position + elements - 1)) return whole;
    uint32_t mask = 0;
#pragma unroll
    for (uint32_t j = 0; j < elements; ++j) mask |= uint32_t(has(position + j)) << j;
    return mask;
  }
  __device__ Load load(uint32_t first) const {
    if (first >= before && first + elements <= length) return baracuda::load<int(elements)>(from + first);
    Load some{};
#pragma unroll
    for (uint32_t j = 0; j < elements; ++j)
      if (first + j >= before && first + j < length) some.lane[j] = from[first + j];
    return some;
  }
  // The thread's loads of some chunks, in their order. One branch for all threads, so that loads follow each other.
  template <int n>
  __device__ void load_chunks(const uint32_t (&numbers)[n], Load (&loads)[n]) const {
    if (numbers[0] * chunk >= before && (numbers[n - 1] + 1) * chunk <= length) {
#pragma unroll
      for (int k = 0; k < n; ++k) loads[k] = baracuda::load<int(elements)>(from + offset(numbers[k]));
    } else {
#pragma unroll
      for (int k = 0; k < n; ++k)
        if (numbers[k] * chunk < length) loads[k] = load(offset(numbers[k]));
    }
  }
  // Calls body(load, offset) for all of them, by all threads together.
  template <int ahead, class Body>
  __device__ void each(const Body& body) const {
    for (uint32_t first = 0; first < chunks(); first += ahead) {
      uint32_t numbers[ahead];
      Load loads[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) numbers[k] = first + k;
      load_chunks(numbers, loads);
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (numbers[k] * chunk < length) body(loads[k], offset(numbers[k]));
    }
  }

  // Loads as words, which 16-bit elements share, with `filling` for what is not in the range.
  using Words = Vector<uint32_t, 4>;
  static __device__ Key element(const Words& words, uint32_t j) {
    constexpr uint32_t of_word = elements / 4;
    return Key(words.lane[j / of_word] >> j % of_word * (32 / of_word));
  }
  __device__ Words load_words(uint32_t first, Key filling) const {
    if (first >= before && first + elements <= length)
      return baracuda::load<4>(reinterpret_cast<const uint32_t*>(from + first));
    constexpr uint32_t of_word = elements / 4;
    Words some{};
#pragma unroll
    for (uint32_t j = 0; j < elements; ++j) {
      Key bits = first + j >= before && first + j < length ? from[first + j] : filling;
      some.lane[j / of_word] |= uint32_t(bits) << j % of_word * (32 / of_word);
    }
    return some;
  }
  // One branch by the kind of numbers for all of them.
  static __device__ void keys_of(const KeyOrder<Key>& order, const Load& load, Key (&keys)[elements]) {
    if (order.infinity) {
#pragma unroll
      for (uint32_t j = 0; j < elements; ++j) keys[j] = order.of(load.lane[j]);
    } else {
#pragma unroll
      for (uint32_t j = 0; j < elements; ++j) keys[j] = order.of(load.lane[j]);
    }
  }
};

}  // namespace internal
}  // namespace baracuda
