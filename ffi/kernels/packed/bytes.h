// Bytes of packed weights, as many at a time as a lane unpacks: four in a word on CUDA, a vector of 16 on a CPU. A
// format (gguf.h, gguf_k.h, scaled.h) takes fields of bits out of them, and is the same code on both.
#pragma once

#include "../number.h"

namespace baracuda::packed {

#ifdef __CUDACC__
using Bytes = uint32_t;
#else
typedef uint8_t Bytes __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(64)));
#endif
inline constexpr int width = sizeof(Bytes);

// The address is a multiple of `aligned`: 1, 2 or 4. Where it may be odd, the two words that have the bytes are read,
// and no word that has none of them.
template <int aligned>
BARACUDA_HD Bytes bytes_at(const uint8_t* from) {
#ifdef __CUDA_ARCH__
  if constexpr (aligned == 4) return *reinterpret_cast<const uint32_t*>(from);
  if constexpr (aligned == 2) {
    const uint16_t* half = reinterpret_cast<const uint16_t*>(from);
    return __byte_perm(half[0], half[1], 0x5410);
  }
  uint32_t past = uint32_t(reinterpret_cast<uintptr_t>(from)) & 3;
  uint32_t low = *reinterpret_cast<const uint32_t*>(from - past);
  uint32_t high = *reinterpret_cast<const uint32_t*>(from + (past ? 4 - int(past) : 0));
  return __funnelshift_r(low, high, 8 * past);
#else
  Bytes bytes;
  memcpy(&bytes, from, sizeof(Bytes));
  return bytes;
#endif
}

// A little-endian integer or a half-precision number at an even address.
BARACUDA_HD uint32_t short_at(const uint8_t* from) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const uint16_t*>(from);
#else
  uint16_t value;
  memcpy(&value, from, sizeof(value));
  return value;
#endif
}

BARACUDA_HD float half_at(const uint8_t* from) {
  Half half;
  half.bits = uint16_t(short_at(from));
  return float(half);
}

// The bits of `mask` of each byte, after a shift to the right.
template <int mask>
BARACUDA_HD Bytes field(Bytes bytes, int shift) {
#ifdef __CUDACC__
  return (bytes >> shift) & (uint32_t(mask) * 0x01010101u);
#else
  return (bytes >> uint8_t(shift)) & uint8_t(mask);
#endif
}

template <int shift>
BARACUDA_HD Bytes raised(Bytes bytes) {
#ifdef __CUDACC__
  return bytes << shift;  // of fields that stay in their bytes
#else
  return bytes << uint8_t(shift);
#endif
}

BARACUDA_HD Bytes flipped(Bytes bytes, int mask) {
#ifdef __CUDACC__
  return bytes ^ (uint32_t(mask) * 0x01010101u);
#else
  return bytes ^ uint8_t(mask);
#endif
}

// Bit k of `bits` in byte k, as the value 16.
BARACUDA_HD Bytes fifth_bits(uint32_t bits) {
#ifdef __CUDACC__
  return (((bits & 15u) * 0x00204081u) & 0x01010101u) << 4;
#else
  Bytes mask = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8_t low = uint8_t(bits), high = uint8_t(bits >> 8);
  Bytes each = {low, low, low, low, low, low, low, low, high, high, high, high, high, high, high, high};
  return Bytes((each & mask) == mask) & uint8_t(16);
#endif
}

// The bytes of a and b in turn, a first.
BARACUDA_HD void interleave(Bytes a, Bytes b, Bytes& first, Bytes& second) {
#ifdef __CUDA_ARCH__
  first = __byte_perm(a, b, 0x5140), second = __byte_perm(a, b, 0x7362);
#elif defined(__CUDACC__)
  first = second = 0;  // never called: nvcc's compilation for the host needs a body
#else
  shuffle<16>(a, b, first, [](int k) { return k / 2 + k % 2 * 16; });
  shuffle<16>(a, b, second, [](int k) { return 8 + k / 2 + k % 2 * 16; });
#endif
}

// What a weight is made of: (value - zero) * scale + shift.
struct Factors {
  float scale, shift, zero;
};

// The values of some bytes of a format: those of the bytes less `offset`, or entries of a table of 16.
template <class Format>
BARACUDA_HD void values(Bytes bytes, const float* table, float (&value)[width]) {
#ifndef __CUDACC__
  if constexpr (!Format::has_table) {
    Floats all = __builtin_convertvector(bytes, Floats) - Format::offset;
    memcpy(value, &all, sizeof(all));
    return;
  }
#endif
  for (int k = 0; k < width; ++k) {
    if constexpr (Format::has_table) {
#ifdef __CUDACC__
      value[k] = table[(bytes >> (8 * k)) & 15];
#else
      value[k] = table[bytes[k]];
#endif
    } else {
#ifdef __CUDA_ARCH__
      // The byte as the last of 2^23, which takes one instruction; conversions of integers take the time of four.
      value[k] = __uint_as_float(__byte_perm(bytes, 0x4B000000u, 0x7540u | k)) - (8388608.0f + Format::offset);
#else
      value[k] = 0;
#endif
    }
  }
}

// Those less the zero point.
template <class Format>
BARACUDA_HD void differences(Bytes bytes, const Factors& by, const float* table, float (&value)[width]) {
  values<Format>(bytes, table, value);
  if constexpr (Format::has_zero)
    for (int k = 0; k < width; ++k) value[k] -= by.zero;
}

// The weights of some bytes of a format.
template <class Format>
BARACUDA_HD void weights(Bytes bytes, const Factors& by, const float* table, float (&weight)[width]) {
  differences<Format>(bytes, by, table, weight);
  for (int k = 0; k < width; ++k) {
    weight[k] *= by.scale;
    if constexpr (Format::has_shift) weight[k] += by.shift;
  }
}

// The index in its block of the first weight of the i-th bytes of a part. A unit is 32 weights of a block, in two
// parts.
template <class Format>
BARACUDA_HD int position(int unit, int part, int i) {
  if constexpr (Format::interleaved) return 32 * unit + (2 * i + part) * width;
  return Format::first(unit, part) + i * width;
}

}  // namespace baracuda::packed
