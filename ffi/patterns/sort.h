// Rows that are sorted, of which some elements are found, or into which some are put: what the drivers are given.
//
// An element's position in its row settles ties, so every order is total: any way to sort is stable, and gives the
// same.
#pragma once

#include <cstdint>

#include "../kernels/sort_key.h"
#include "executor.h"

namespace baracuda {

// The first `kept` of each sorted row of `count`.
struct SortShape {
  int64_t rows, count, kept;
  bool descending;
};

// The elements of some ranks of each row. A row of ranks serves neighboring rows.
struct SelectShape {
  int64_t rows, count, ranks;
  int64_t rank_rows;

  BARACUDA_HD int64_t rank_row(int64_t row) const { return row / (rows / rank_rows); }
};

// `items` elements of each row go to positions among `count`; `unique` promises that no two go to one. To negative
// positions `added` is added: `count` where these count from the end, else 0.
struct ScatterShape {
  int64_t rows, count, items;
  bool unique;
  int32_t added = 0;

  BARACUDA_HD int64_t position(int32_t to) const { return to < 0 ? to + added : to; }
};

}  // namespace baracuda
