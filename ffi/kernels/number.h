// Numbers as kernels see them: storage types for f16 and bf16, and the types that sums and comparisons are done in.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define BARACUDA_HD __host__ __device__ __forceinline__
#else
#include "shuffle.h"
#define BARACUDA_HD inline __attribute__((always_inline))
#endif

namespace baracuda {

template <class To, class From>
BARACUDA_HD To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

struct Half {
  uint16_t bits;
  Half() = default;
  BARACUDA_HD explicit Half(float x);
  BARACUDA_HD operator float() const;
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  BARACUDA_HD explicit BFloat16(float x);
  BARACUDA_HD operator float() const { return bit_cast<float>(uint32_t(bits) << 16); }
};

// The host conversions are free of branches, so that loops over them vectorize, and never touch a subnormal float:
// XLA's CPU threads flush those to zero.
BARACUDA_HD Half::operator float() const {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(bits));
#else
  uint32_t magnitude = bits & 0x7fffu, sign = uint32_t(bits & 0x8000u) << 16;
  uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00u ? (255u - 31u) << 23 : (127u - 15u) << 23);
  uint32_t subnormal = bit_cast<uint32_t>(float(int32_t(magnitude)) * 0x1p-24f);
  return bit_cast<float>((magnitude < 0x400u ? subnormal : normal) | sign);
#endif
}

BARACUDA_HD Half::Half(float x) {
#ifdef __CUDA_ARCH__
  bits = __half_as_ushort(__float2half_rn(x));
#else
  uint32_t all = bit_cast<uint32_t>(x), magnitude = all & 0x7fffffffu;
  uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - ((127u - 15u) << 23)) >> 13;
  // Adding 0.5 leaves the rounded multiple of 2^-24 in the low bits.
  uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  uint32_t half = magnitude >= 0x477ff000u ? special : magnitude < 0x38800000u ? subnormal : normal;
  bits = uint16_t(half | ((all >> 16) & 0x8000u));
#endif
}

BARACUDA_HD BFloat16::BFloat16(float x) {
#ifdef __CUDA_ARCH__
  bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
  uint32_t all = bit_cast<uint32_t>(x);
  uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
  bits = uint16_t((all & 0x7fffffffu) > 0x7f800000u ? (all >> 16) | 0x40u : rounded);
#endif
}

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_float = is_half<T> || std::is_floating_point_v<T>;

namespace internal {
template <class T, class = void>
struct Wide {
  using type = T;
};
template <class T>
struct Wide<T, std::enable_if_t<is_half<T>>> {
  using type = float;
};
template <class T>
struct Wide<T, std::enable_if_t<std::is_integral_v<T>>> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
}  // namespace internal

// What sums and products are formed in: float for 16-bit floats; unsigned for integers, whose overflow wraps and is
// defined.
template <class T>
using Accumulator = typename internal::Wide<T>::type;

// What has the sums and products of T: signed integers those of unsigned ones, bit by bit.
template <class T>
using Modular = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

// What values are compared in: float for 16-bit floats, the type itself otherwise.
template <class T>
using Comparable = std::conditional_t<is_half<T>, float, T>;

// The value, or 0: on CPU without the branch that GCC might make, with which a loop does not vectorize.
template <class Wide>
BARACUDA_HD Wide value_if(bool condition, Wide value) {
#ifdef __CUDA_ARCH__
  return condition ? value : Wide{};
#else
  using Bits =
      std::conditional_t<sizeof(Wide) == 8, uint64_t, std::conditional_t<sizeof(Wide) == 4, uint32_t, uint16_t>>;
  return bit_cast<Wide>(Bits(bit_cast<Bits>(value) & Bits(-Bits(condition))));
#endif
}

// A list of types.
template <class... T>
struct Types {};

// V neighbors, moved as one access: on CUDA the driver sees to the alignment that this needs.
template <class T, int V>
#ifdef __CUDACC__
struct alignas(sizeof(T) * V) Vector {
#else
struct Vector {
#endif
  T lane[V];
};

template <int V, class T>
BARACUDA_HD Vector<T, V> load(const T* from) {
  if constexpr (V == 1) return {{*from}};  // and not an array, which GCC would leave in memory
  return *reinterpret_cast<const Vector<T, V>*>(from);
}

#ifndef __CUDACC__
// V values, two apart. None after the last is read: for that the vectoriser would leave some lanes to scalar code.
template <int V, int widest = 32, class T>  // bytes of a vector
inline Vector<T, V> load_even(const T* from) {
  constexpr int lanes = V * int(sizeof(T)) < widest ? V : widest / int(sizeof(T));
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  typedef Bits Pack __attribute__((vector_size(lanes * sizeof(T))));
  Vector<T, V> value;
  for (int first = 0; first < V; first += lanes) {
    bool last = first + lanes == V;
    Pack low, high, even;
    memcpy(&low, from + 2 * first, sizeof(Pack));
    memcpy(&high, from + 2 * first + lanes - last, sizeof(Pack));
    if (last)
      shuffle<lanes>(low, high, even, [](int k) { return 2 * k < lanes ? 2 * k : 2 * k + 1; });
    else
      shuffle<lanes>(low, high, even, [](int k) { return 2 * k; });
    memcpy(value.lane + first, &even, sizeof(Pack));
  }
  return value;
}
#endif

// V values, `step` apart.
template <int V, class T, class Step>
BARACUDA_HD Vector<T, V> load(const T* from, Step step) {
  if constexpr (std::is_same_v<Step, std::integral_constant<int, 1>>) {
    return load<V>(from);
#ifndef __CUDACC__
  } else if constexpr (V > 1 && std::is_same_v<Step, std::integral_constant<int, 2>>) {
    return load_even<V>(from);
#endif
  } else {
    Vector<T, V> value;
    for (int k = 0; k < V; ++k) value.lane[k] = from[k * step];
    return value;
  }
}

template <int V, class T>
BARACUDA_HD void store(T* to, const Vector<T, V>& value) {
#ifdef __CUDA_ARCH__
  // By assignment nvcc may store the lanes one by one.
  constexpr int bytes = sizeof(T) * V, half = V / 2;
  if constexpr (bytes > 16 && V % 2 == 0) {
    Vector<T, half> low, high;
    memcpy(&low, value.lane, sizeof(low)), memcpy(&high, value.lane + half, sizeof(high));
    return store<half>(to, low), store<half>(to + half, high);
  }
  if constexpr (V > 1 && (bytes == 4 || bytes == 8 || bytes == 16)) {
    using Word = std::conditional_t<bytes == 4, uint32_t, std::conditional_t<bytes == 8, uint2, uint4>>;
    Word word;
    memcpy(&word, &value, bytes);
    return __stwb(reinterpret_cast<Word*>(to), word);
  }
#endif
  *reinterpret_cast<Vector<T, V>*>(to) = value;
}

// `value` in V lanes.
template <int V, class T>
BARACUDA_HD void fill(T* to, T value) {
  Vector<T, V> lanes;
  for (int k = 0; k < V; ++k) lanes.lane[k] = value;
  store<V>(to, lanes);
}

}  // namespace baracuda
