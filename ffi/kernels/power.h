// Powers of magnitudes.
#pragma once

#include "number.h"

namespace baracuda {

// a^p for a >= 0 and p != 0. The library's, on CPU, is a call for each lane; for floats this is free of branches: 2^(p
// log2 a) in double, whose rounding a float does not see. log2 is the series of atanh, 2^f the one of exp.
template <class Wide>
BARACUDA_HD Wide power_of(Wide a, double p) {
#ifndef __CUDA_ARCH__
  if constexpr (std::is_same_v<Wide, float>) {
    constexpr double infinity = std::numeric_limits<double>::infinity(), round = 0x1.8p52;
    uint64_t bits = bit_cast<uint64_t>(double(a));
    // The mantissa in [sqrt(1/2), sqrt(2)), and the exponent, as a double made of its bits.
    uint64_t from_root = bits - 0x3fe6a09e667f3bcdu + 0x0010000000000000u * 1024;
    double mantissa = bit_cast<double>((from_root & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double exponent = bit_cast<double>((from_root >> 52) | 0x4330000000000000u) - (0x1p52 + 1024);
    double s = (mantissa - 1) / (mantissa + 1), s2 = s * s;
    double series = 1 + s2 * (1. / 3 + s2 * (1. / 5 + s2 * (1. / 7 + s2 * (1. / 9 + s2 * (1. / 11 + s2 / 13)))));
    double log = exponent + 2.8853900817779268 * s * series;
    log = a == 0 ? -infinity : a > std::numeric_limits<float>::max() ? infinity : log;
    double y = p * log;
    // A float is 0 or infinite long before.
    y = y < -1000 ? -1000 : y > 1000 ? 1000 : y;
    double shifted = y + round, f = (y - (shifted - round)) * 0.69314718055994531;
    double fraction =
        1 + f * (1 + f * (1. / 2 + f * (1. / 6 + f * (1. / 24 + f * (1. / 120 + f * (1. / 720 + f / 5040))))));
    double result = fraction * bit_cast<double>((bit_cast<uint64_t>(shifted) + 1023) << 52);
    return a == a ? float(result) : a;
  }
#endif
  return std::pow(a, Wide(p));
}

}  // namespace baracuda
