// The compact pattern: of each row of [rows, count] the positions of the elements that a predicate keeps, in ascending
// order, the first `size` of them. Positions of the result after the last hold `fill`. `found` [rows] says how many
// there are in all.
#pragma once

#include "../kernels/compact.h"
#include "executor.h"

namespace baracuda {

struct CompactShape {
  int64_t rows, count, size;
  int32_t fill;
};

}  // namespace baracuda
