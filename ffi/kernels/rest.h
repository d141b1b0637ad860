// What rounding takes from a result, for a gradient that would not do without it.
#pragma once

#include "number.h"

namespace baracuda {

// What is left of most + log when `value` is taken from it, which is its rounding; 0 where that is not finite.
template <class Wide>
BARACUDA_HD Wide rest_of(Wide most, Wide log, Wide value) {
  Wide difference = most - value;
  return value - value == 0 ? difference + log : Wide(0);
}

// What a product is saved in: float for Half, whose range products leave. One rounding of any other type is no more
// than one of the gradient.
template <class T>
using Ranged = std::conditional_t<std::is_same_v<T, Half>, float, T>;

}  // namespace baracuda
