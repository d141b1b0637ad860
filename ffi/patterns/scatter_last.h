// Items that are put into rows of zeros by an index, of several at one position the last; and what is there read back
// by those that were. An index out of range puts nothing, and reads 0.
#pragma once

#include "executor.h"

namespace baracuda {

// index and x [rows, items], y [rows, count]
struct ScatterLastShape {
  int64_t rows, count, items;
};

}  // namespace baracuda
