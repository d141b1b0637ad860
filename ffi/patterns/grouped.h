// The grouped pattern: products of rows with the matrix of the group that each is in, and the sums of outer products of
// two arrays' rows over each group. Batches have rows, groups and orders of their own.
//
// `order` lists a batch's rows by group; those of group g are its entries edges[g] ... edges[g + 1] - 1. The rows
// without a group are those of the one after the last.
#pragma once

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {

struct GroupedRows {
  int64_t batches, rows, groups;
  const uint32_t* order;  // [rows]
  const int32_t* edges;   // [groups + 2]

  BARACUDA_HD GroupedRows of(int64_t batch) const {
    return {1, rows, groups, order + batch * rows, edges + batch * (groups + 2)};
  }
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

  // At least as many as a batch has.
  int64_t tiles() const { return by.rows / tile + (by.rows < by.groups + 1 ? by.rows : by.groups + 1); }
  BARACUDA_HD GroupedProducts of(int64_t batch) const {
    return {by.of(batch),
            inner,
            columns,
            transposed,
            a + batch * by.rows * inner,
            b + batch * by.groups * inner * columns,
            y + batch * by.rows * columns,
            tile,
            first + batch * (by.groups + 2)};
  }
};

// sums[g] = sum of a[i]^T b[i] over the rows i of group g: a [rows, left], b [rows, right], sums [groups, left, right].
template <class T>
struct GroupedSums {
  GroupedRows by;
  int64_t left, right;
  const T *a, *b;
  T* sums;

  BARACUDA_HD GroupedSums of(int64_t batch) const {
    return {by.of(batch),
            left,
            right,
            a + batch * by.rows * left,
            b + batch * by.rows * right,
            sums + batch * by.groups * left * right};
  }
};

}  // namespace baracuda
