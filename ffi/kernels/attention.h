// Softmax attention, key by key: a key's score, and the sums over the keys so far, which merge with those over others.
// Scores are in units of log(2), so that their exponentials are powers of two.
#pragma once

#include "exponential.h"
#include "special/tanh.h"

namespace baracuda {

template <class Wide>
inline constexpr Wide log2_e = Wide(1.44269504088896340735992468100189214);
template <class Wide>
inline constexpr Wide log_2 = Wide(0.693147180559945309417232121458176568);

// 2^x for x <= 0 and for NaN.
template <class Wide>
BARACUDA_HD Wide power_of_two(Wide x) {
#ifdef __CUDACC__
  return exp2(x);
#else
  if constexpr (sizeof(Wide) == 4) {
    x = x < -127.f ? -127.f : x;        // where the result is 0: subnormals are
    constexpr float shift = 0x1.8p23f;  // leaves no bits for a fraction, and the integer in the low ones
    float shifted = x + shift, r = (x - (shifted - shift)) * log_2<float>;
    float rest = std::fma(r * r, horner(r, 1 / 2.f, 1 / 6.f, 1 / 24.f, 1 / 120.f, 1 / 720.f, 1 / 5040.f), r);
    int32_t exponent = int32_t(bit_cast<uint32_t>(shifted) - bit_cast<uint32_t>(shift)) + 127;
    float scale = bit_cast<float>(uint32_t(exponent < 0 ? 0 : exponent) << 23);
    return std::fma(scale, rest, scale);
  }
  return std::exp2(x);
#endif
}

// The score of a key: cap(scale q.k) + slope (j - i), cap(s) = softcap tanh(s / softcap).
template <class Wide>
struct AttentionScore {
  Wide factor, cap;  // the cap is 0 where there is none

  AttentionScore(double scale, double softcap)
      : factor(Wide(softcap > 0 ? scale / softcap : scale * log2_e<double>)), cap(Wide(softcap * log2_e<double>)) {}

  // A slope times the distance is of natural units.
  BARACUDA_HD Wide operator()(Wide product, Wide slope, Wide distance) const {
    Wide s = factor * product;
    if (cap > 0) s = capped(s);
    return s + slope * distance * log2_e<Wide>;
  }
  // Of what is scaled.
  BARACUDA_HD Wide capped(Wide s) const { return cap * special::tanh(s); }
  // Its derivative in the product, in natural units.
  BARACUDA_HD Wide slope(Wide product, Wide scale) const {
    if (!(cap > 0)) return scale;
    Wide t = special::tanh(factor * product);
    return scale * (1 - t * t);
  }
};

// The largest score of some keys, and the sum of 2^(score - largest) over them. What else is summed with these weights
// is scaled as the sum is.
template <class Wide>
struct SoftmaxState {
  Wide largest, total;

  static constexpr Wide nothing = -std::numeric_limits<Wide>::infinity();
  BARACUDA_HD static SoftmaxState empty() { return {nothing, 0}; }
  // What weights are relative to: any number where no key has one. NaN is in the total.
  BARACUDA_HD static Wide reference(Wide largest) { return largest == nothing ? Wide(0) : largest; }
  BARACUDA_HD static Wide larger(Wide a, Wide b) { return b > a ? b : a; }
  // By what sums that are relative to `largest` are multiplied to be relative to another, which is not smaller.
  BARACUDA_HD static Wide weight(Wide largest, Wide other) { return power_of_two(largest - reference(other)); }

  BARACUDA_HD bool is_empty() const { return total == 0; }
  BARACUDA_HD Wide log_sum_exp() const { return is_empty() ? nothing : log_2<Wide> * (largest + std::log2(total)); }
};

}  // namespace baracuda
