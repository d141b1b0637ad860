// The scan pattern: each element of x [outer, count, inner] sees what comes before it along the middle axis, or after
// it.
//
// Where slices are few and long, they are cut into parts. What a part comes to, its total, is formed first; what a
// element sees is its part, joined to the totals before. Where slices are cut, and the order of joining,
// depend on the shape alone, so the bits do not depend on which worker came first.
#pragma once

#include "../kernels/scan.h"
#include "executor.h"

namespace baracuda {

struct ScanShape {
  int64_t outer = 1, count = 1, inner = 1;
  bool reverse = false, exclusive = false;

  int64_t elements() const { return outer * count * inner; }
  // Which position on the axis a position of the scan has.
  BARACUDA_HD int64_t index(int64_t position) const { return reverse ? count - 1 - position : position; }
  // Of slices that follow one another in memory: V columns of a row, from `column` on.
  template <int V>
  BARACUDA_HD ScanColumns<V> columns(int64_t row, int64_t column, int64_t position) const {
    return {(row * count + index(position)) * inner + column, reverse ? -inner : inner, position, count};
  }
  template <int V>
  BARACUDA_HD ScanRow<V> row(int64_t row, int64_t position) const {
    return {row * count + index(position), position, count, reverse};
  }
};

}  // namespace baracuda
