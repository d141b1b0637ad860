// The histogram pattern: how many elements of each row of [rows, count] are in each of [rows, bins].
#pragma once

#include "../kernels/histogram.h"
#include "executor.h"

namespace baracuda {

struct CountShape {
  int64_t rows, count, bins;
};

}  // namespace baracuda
