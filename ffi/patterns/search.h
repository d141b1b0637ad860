// The search pattern: each value finds its position in a sorted sequence, [sequence_rows, count] for values
// [rows, values]. A sequence serves neighboring rows of values.
#pragma once

#include "../kernels/search.h"
#include "executor.h"

namespace baracuda {

struct SearchShape {
  int64_t rows, count, values, sequence_rows;

  BARACUDA_HD int64_t sequence_row(int64_t row) const {
    return sequence_rows == rows ? row : row / (rows / sequence_rows);
  }
};

}  // namespace baracuda
