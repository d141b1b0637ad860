// What an element's copies come to: their sum, formed in the accumulator of the dtype and rounded once.
#pragma once

#include "number.h"

namespace baracuda {

template <class T>
struct CopySum {
  using Element = T;
  using Wide = Accumulator<T>;

  BARACUDA_HD Wide start() const { return Wide(0); }
  // Another copy, or the sum of other copies.
  template <class Value>
  BARACUDA_HD Wide add(Wide sum, Value value) const {
    return sum + Wide(value);
  }
  BARACUDA_HD T finish(Wide sum) const { return T(sum); }
};

}  // namespace baracuda
