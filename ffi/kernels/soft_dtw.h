// Soft dynamic time warping: the soft minimum, over the alignments of two series, of the sum of their costs.
//
// An alignment is a path through the matrix of costs from its first to its last element, along a row, a column or a
// diagonal. With weights exp(-cost / gamma) the soft minimum is -gamma log of the sum over all paths of the product of
// their weights. What is known of an element are two sums, over the paths before it and those after it. The elements of
// an antidiagonal are a row of the lattice, with a state for each column: a path goes to the next row, or skips one.
#pragma once

#include "lattice.h"

namespace baracuda {

struct SoftDtwShape {
  int64_t size, rows, columns;  // of each of so many matrices
  double gamma;
};

struct SoftDtwLengths {
  SoftDtwShape shape;
  const int32_t *row_lengths, *column_lengths;

  BARACUDA_HD int rows_of(int64_t b) const {
    int64_t rows = row_lengths[b];
    return int(rows < 0 ? 0 : rows > shape.rows ? shape.rows : rows);
  }
  BARACUDA_HD int columns_of(int64_t b) const {
    int64_t columns = column_lengths[b];
    return int(columns < 0 ? 0 : columns > shape.columns ? shape.columns : columns);
  }
  BARACUDA_HD int64_t batches() const { return shape.size; }
  BARACUDA_HD int64_t rows() const {
    return shape.rows == 0 || shape.columns == 0 ? 0 : shape.rows + shape.columns - 1;
  }
  BARACUDA_HD int states() const { return int(shape.columns); }
  BARACUDA_HD LatticeSample sample(int64_t b) const {
    int rows = rows_of(b), columns = columns_of(b);
    return {rows == 0 || columns == 0 ? 0 : rows + columns - 1, columns};
  }
  // The soft minimum of a sum over paths, or that of no matrix: only two series without elements have an alignment.
  template <class Wide>
  BARACUDA_HD Wide minimum(Scaled<Wide> total) const {
    return Wide(0) - Wide(shape.gamma) * logarithm_of(total);
  }
  template <class Wide>
  BARACUDA_HD Wide minimum_of_nothing(int64_t b) const {
    return rows_of(b) == 0 && columns_of(b) == 0 ? Wide(0) : std::numeric_limits<Wide>::infinity();
  }
};

// cost [batches, rows, columns].
template <class T>
struct SoftDtw : SoftDtwLengths {
  using Element = T;
  using Wide = Accumulator<T>;
  const T* cost;

  BARACUDA_HD const T* matrix(int64_t b) const { return cost + b * shape.rows * shape.columns; }
};

// The logarithm of an element's weight.
template <class Wide>
BARACUDA_HD Wide soft_dtw_log_weight(Wide cost, Wide gamma) {
  return -cost / gamma;
}

// What a path brings to the next column: from this row, whose own sums with their weights these are, and the one
// before.
template <class Wide>
BARACUDA_HD Scaled<Wide> soft_dtw_carry(Scaled<Wide> now, Scaled<Wide> earlier) {
  return now + earlier;
}

}  // namespace baracuda
