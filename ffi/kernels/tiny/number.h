// Numbers of the tiny pattern: T, of one matrix, or on a CPU a pack of T, of eight matrices that are computed in the
// lanes of vectors. Functors are written once for both: they choose instead of branching.
#pragma once

#include "../number.h"

namespace baracuda {
namespace tiny {

inline constexpr int pack_lanes = 8;

#ifndef __CUDACC__
template <class T>
struct PackOf {
  typedef T type __attribute__((vector_size(pack_lanes * sizeof(T))));
};
template <class T>
using Pack = typename PackOf<T>::type;

template <class S>
struct ElementOf {
  using type = S;
};
template <>
struct ElementOf<Pack<float>> {
  using type = float;
};
template <>
struct ElementOf<Pack<double>> {
  using type = double;
};

template <class T>
inline constexpr bool is_pack = !std::is_arithmetic_v<T>;
#else
template <class S>
struct ElementOf {
  using type = S;
};
template <class T>
inline constexpr bool is_pack = false;
#endif

// T of T and of a pack.
template <class S>
using Element = typename ElementOf<S>::type;

// The same number for every matrix.
template <class S>
BARACUDA_HD S all(Element<S> x) {
  if constexpr (is_pack<S>)
    return x - S{};
  else
    return x;
}

// Of each matrix: a where the condition holds, otherwise b.
template <class S, class Condition>
BARACUDA_HD S choose(Condition condition, S a, S b) {
  return condition ? a : b;
}

template <class S>
BARACUDA_HD S magnitude(S x) {
  return choose(x < all<S>(0), -x, x);
}

template <class S>
BARACUDA_HD S larger(S a, S b) {
  return choose(a < b, b, a);
}

template <class S>
BARACUDA_HD S root(S x) {
  if constexpr (is_pack<S>) {
    Element<S> lanes[pack_lanes];
    memcpy(lanes, &x, sizeof(S));
    for (int k = 0; k < pack_lanes; ++k) lanes[k] = std::sqrt(lanes[k]);
    memcpy(&x, lanes, sizeof(S));
    return x;
  } else {
    return std::sqrt(x);
  }
}

// 1 / root(x) of a normal x, up to about one rounding.
template <class T>
BARACUDA_HD T inverse_root(T x) {
#ifdef __CUDA_ARCH__
  T near = ::rsqrt(x);
  return near + near * T(0.5) * (1 - x * near * near);
#else
  return 1 / std::sqrt(x);
#endif
}

// Whether it holds for any of the matrices.
template <class Condition>
BARACUDA_HD bool holds_for_any(const Condition& condition) {
  if constexpr (std::is_same_v<Condition, bool>) {
    return condition;
  } else {
    int found = 0;
    for (int k = 0; k < pack_lanes; ++k) found |= condition[k] != 0;
    return found != 0;
  }
}

template <class S>
BARACUDA_HD S not_a_number() {
  return all<S>(std::numeric_limits<Element<S>>::quiet_NaN());
}

// Whether x is neither infinite nor NaN.
template <class S>
BARACUDA_HD auto is_finite(S x) {
  return magnitude(x) <= all<S>(std::numeric_limits<Element<S>>::max());
}

// The largest power of two that is not larger than x, for normal x; otherwise a number by which nothing is changed. Its
// reciprocal is exact, and no subnormal number.
template <class S>
BARACUDA_HD S power_of_two(S x) {
  using T = Element<S>;
  constexpr T smallest = std::numeric_limits<T>::min(), largest = 1 / (2 * smallest);
  auto of_one = [](T number) {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    constexpr int mantissa = std::numeric_limits<T>::digits - 1;
    return bit_cast<T>(Bits(bit_cast<Bits>(number) >> mantissa << mantissa));
  };
  auto is_usual = [&](T number) { return number >= smallest && number <= std::numeric_limits<T>::max(); };
  if constexpr (is_pack<S>) {
    for (int k = 0; k < pack_lanes; ++k) x[k] = is_usual(x[k]) ? std::fmin(of_one(x[k]), largest) : T(1);
    return x;
  } else {
    return is_usual(x) ? T(fmin(of_one(x), largest)) : T(1);
  }
}

}  // namespace tiny
}  // namespace baracuda
