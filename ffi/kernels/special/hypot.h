// sqrt(x^2 + y^2), without overflow; infinite where x or y is, even if the other is NaN.
#pragma once

#include "../number.h"

namespace baracuda::special {

// In float alone, within 2 units: a GPU's double may be slow, and CUDA's hypotf is within 3.
BARACUDA_HD float hypot_by_ratio(float x, float y) {
  x = std::abs(x), y = std::abs(y);
  float larger = x > y ? x : y, smaller = x > y ? y : x, ratio = smaller / larger;
  float result = larger * std::sqrt(1 + ratio * ratio);
  bool infinite = x == std::numeric_limits<float>::infinity() || y == std::numeric_limits<float>::infinity();
  return infinite ? std::numeric_limits<float>::infinity() : larger == 0 ? smaller : result;
}

template <class T>
BARACUDA_HD T hypot(T x, T y) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 4) return hypot_by_ratio(x, y);
#else
  if constexpr (sizeof(T) == 4) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    T result = T(std::sqrt(double(x) * x + double(y) * y));
    return std::abs(x) == infinity || std::abs(y) == infinity ? infinity : result;
  }
#endif
  return std::hypot(x, y);
}

}  // namespace baracuda::special
