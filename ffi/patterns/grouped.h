// The grouped pattern: products of rows with the matrix of the group that each is in, and the sums of outer products of
// two arrays' rows over each group.
//
// `order` lists the rows by group; those of group g are its entries edges[g] ... edges[g + 1] - 1. The rows without a
// group are those of the one after the last.
#pragma once

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {

struct GroupedRows {
  int64_t rows, groups;
  const int32_t *order, *edges;  // [rows], [groups + 2]
};

// y[i] = a[i] b[g], for row i of group g, and 0 without a group: a [rows, inner], b [groups, inner, columns], or
// [groups, columns, inner] if transposed, y [rows, columns].
template <class T>
struct GroupedProducts {
  GroupedRows by;
  int64_t inner, columns;
  bool transposed;
  const T *a, *b;
  T* y;
  // The rows of a tile, and how many tiles of rows precede each group [groups + 2].
  int64_t tile;
  const int32_t* first;

  // At least as many as there are.
  int64_t tiles() const { return by.rows / tile + (by.rows < by.groups + 1 ? by.rows : by.groups + 1); }
};

// sums[g] = sum of a[i]^T b[i] over the rows i of group g: a [rows, left], b [rows, right], sums [groups, left, right].
template <class T>
struct GroupedSums {
  GroupedRows by;
  int64_t left, right;
  const T *a, *b;
  T* sums;
};

}  // namespace baracuda
