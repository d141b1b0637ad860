// The cube root.
#pragma once

#include "../number.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T cbrt(T x) {
#ifndef __CUDACC__
  if constexpr (sizeof(T) == 4) {
    // A third of the logarithm, as the bits have it, is within 3.4%; each step of Halley's method cubes the error.
    double a = std::abs(double(x));
    uint64_t third = ((bit_cast<uint64_t>(a) >> 32) * 0x55555556u >> 32) + 0x2a9f8000u;
    double y = bit_cast<double>(third << 32);
    for (int step = 0; step < 2; ++step) {
      double cube = y * y * y;
      y *= (cube + 2 * a) / (2 * cube + a);
    }
    return x == 0 || a > std::numeric_limits<T>::max() ? x : std::copysign(T(y), x);
  }
#endif
  return std::cbrt(x);
}

}  // namespace baracuda::special
