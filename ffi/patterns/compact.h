// The compact pattern: of each row of [rows, count] the places of the cells that a predicate keeps, in rising order,
// the first `size` of them. Places of the result behind the last hold `fill`. `found` [rows] says how many there are in
// all.
#pragma once

#include "../kernels/compact.h"
#include "executor.h"

namespace baracuda {

struct CompactShape {
  int64_t rows, count, size;
  int32_t fill;
};

}  // namespace baracuda
