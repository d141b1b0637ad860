// Factors of products whose zeros are counted apart.
#pragma once

#include "../complex.h"

namespace baracuda {

// What stands for a factor: for a zero, 1 with its sign.
template <class Wide>
BARACUDA_HD Wide factor_of(Wide x) {
  if constexpr (is_complex<Wide>)
    return x == Wide(0) ? Wide(1) : x;
  else
    return x == Wide(0) ? std::copysign(Wide(1), x) : x;
}

}  // namespace baracuda
