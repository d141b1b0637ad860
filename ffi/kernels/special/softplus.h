// log(1 + e^x).
#pragma once

#include "elementary.h"

namespace baracuda::special {

template <class T>
BARACUDA_HD T softplus(T x) {
  double rest = logarithm_of_one_and_for<T>(exponential_for<T>(-std::abs(double(x))));
  return T((x < 0 ? T(0) : x) + rest);
}

}  // namespace baracuda::special
