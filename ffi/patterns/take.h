// The take pattern: rows of x [batches, count, columns] in the order of an index [batches, rows], which gives
// y [batches, rows, columns]. Numbers outside of x give rows of a fill value.
#pragma once

#include "divisor.h"
#include "executor.h"

namespace baracuda {

struct TakeShape {
  int64_t batches, count, rows, columns;
  int64_t sharing;  // batches that have one index

  // Where row `row` of all of y comes from; -1 for the fill value.
  BARACUDA_HD int64_t position(const int32_t* index, int64_t row) const {
    int64_t batch = row / rows, from = index[batch / sharing * rows + row - batch * rows];
    return from < 0 || from >= count ? -1 : (batch * count + from) * columns;
  }
};

}  // namespace baracuda
