// What the rows pattern with sums of columns asks on both platforms.
#pragma once

#include "../kernels/number.h"

namespace baracuda {

// Where the sums of columns are written: in T, or as they are computed.
template <class T>
struct ColumnSums {
  T* narrow = nullptr;
  Accumulator<T>* wide = nullptr;  // where it is null, `narrow` has them

  BARACUDA_HD void write(int64_t position, Accumulator<T> sum) const {
    if (wide)
      wide[position] = sum;
    else
      narrow[position] = T(sum);
  }
};

}  // namespace baracuda
