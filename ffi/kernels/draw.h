// What elements become of their random bits. A Draw is made of the numbers of its row; it says of which type the bits
// of an element are, what it makes of them, and what its operand is, where it has one.
//
// The bits of a float are those of its mantissa, the highest ones that are drawn: so many as `jax.random` draws.
#pragma once

#include "number.h"
#include "rounded.h"
#include "special/erf_inv_giles.h"

namespace baracuda {

template <class T>
struct FloatBits;
template <>
struct FloatBits<double> {
  using type = uint64_t;
  static constexpr int mantissa = 52;
};
template <>
struct FloatBits<float> {
  using type = uint32_t;
  static constexpr int mantissa = 23;
};
template <>
struct FloatBits<Half> {
  using type = uint16_t;
  static constexpr int mantissa = 10;
};
template <>
struct FloatBits<BFloat16> {
  using type = uint8_t;
  static constexpr int mantissa = 7;
};

// The mantissa of T that is drawn.
template <class T>
BARACUDA_HD typename FloatBits<T>::type drawn_mantissa(typename FloatBits<T>::type bits) {
  return bits >> (8 * sizeof(bits) - FloatBits<T>::mantissa);
}

// A uniform number in [0, 1): that in [1, 2) with this mantissa, less 1.
template <class T>
BARACUDA_HD Accumulator<T> unit(typename FloatBits<T>::type bits) {
  if constexpr (sizeof(T) == 8)
    return bit_cast<double>(drawn_mantissa<T>(bits) | 0x3ff0000000000000u) - 1;
  else
    return bit_cast<float>(uint32_t(drawn_mantissa<T>(bits)) << (23 - FloatBits<T>::mantissa) | 0x3f800000u) - 1;
}

// How many mantissas are less than p as numbers in [0, 1): an element is less than p if its mantissa is below this.
template <class T>
BARACUDA_HD typename FloatBits<T>::type mantissas_below(Accumulator<T> p) {
  using Number = Accumulator<T>;
  constexpr Number all = Number(uint64_t(1) << FloatBits<T>::mantissa);
  if (!(p > 0)) return 0;
  return typename FloatBits<T>::type(p < 1 ? std::ceil(p * all) : all);
}

template <class T>
struct RandomBits {
  using Bits = T;
  using Result = T;
  using Operand = void;
  using Number = uint32_t;
  static constexpr int numbers = 0;
  explicit BARACUDA_HD RandomBits(const Number*) {}
  BARACUDA_HD T operator()(T bits) const { return bits; }
};

// max(low, low + width u): with a width below 0, low.
template <class T>
struct Uniform {
  using Bits = typename FloatBits<T>::type;
  using Result = T;
  using Operand = void;
  using Number = Accumulator<T>;
  static constexpr int numbers = 2;
  Number low, width;
  explicit BARACUDA_HD Uniform(const Number* number) : low(number[0]), width(number[1] < 0 ? 0 : number[1]) {}

  BARACUDA_HD T operator()(Bits bits) const {
    Number u = unit<T>(bits);
    if constexpr (is_half<T>)
      return T(rounded_to<T>(u * width) + low);
    else
      return std::fma(u, width, low);
  }
};

// mean + std z
template <class T>
struct Normal {
  using Bits = typename FloatBits<T>::type;
  using Result = T;
  using Operand = void;
  using Number = Accumulator<T>;
  static constexpr int numbers = 2;
  Number mean, std;
  explicit BARACUDA_HD Normal(const Number* number) : mean(number[0]), std(number[1]) {}

  BARACUDA_HD T operator()(Bits bits) const {
    // Of the numbers between -1 and 1 that are as far from each other, those in the middle: exact.
    constexpr Number lowest = Number(1) / Number(uint64_t(2) << FloatBits<T>::mantissa) - 1;
    constexpr double root = 1.41421356237309504880;
    Number y = special::erfinv_giles(std::fma(unit<T>(bits), Number(2), lowest));
    if constexpr (is_half<T>)
      return T(std::fma(std, rounded_to<T>(rounded_to<T>(y) * 0x1.6ap0f), mean));  // sqrt(2) of 16 bits
    else
      return std::fma(std * Number(root), y, mean);
  }
};

// u < p
template <class T>
struct Bernoulli {
  using Bits = typename FloatBits<T>::type;
  using Result = bool;
  using Operand = void;
  using Number = Accumulator<T>;
  static constexpr int numbers = 1;
  Bits below;
  explicit BARACUDA_HD Bernoulli(const Number* number) : below(mantissas_below<T>(number[0])) {}
  BARACUDA_HD bool operator()(Bits bits) const { return drawn_mantissa<T>(bits) < below; }
};

// factor x where u < kept, else 0. The first number is kept, of float.
template <class T>
struct Dropout {
  using Bits = uint32_t;
  using Result = T;
  using Operand = T;
  using Number = Accumulator<T>;
  static constexpr int numbers = 2;
  Bits last;  // the largest bits of what is kept, if any is: compared without a shift
  bool any;
  Number factor;
  explicit BARACUDA_HD Dropout(const Number* number) : factor(number[1]) {
    const Bits below = mantissas_below<float>(float(number[0]));
    any = below > 0, last = (below << (32 - FloatBits<float>::mantissa)) - 1;
  }
  BARACUDA_HD T operator()(Bits bits, T x) const { return T(value_if((bits <= last) & any, Number(x) * factor)); }
};

}  // namespace baracuda
