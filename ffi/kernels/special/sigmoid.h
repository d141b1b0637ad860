// 1 / (1 + e^-x).
#pragma once

#include "elementary.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T sigmoid(T x) {
  double e = exponential_for<T>(-std::abs(double(x)));
  return T((x < 0 ? e : 1) / (1 + e));
}

}  // namespace baracuda::special
