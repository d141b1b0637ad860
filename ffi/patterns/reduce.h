// The reduce pattern: slices of elements of x, each of which is reduced to an element of y.
//
// It has two directions. `reduce_slices`: each slice is reduced, its elements in an order that the shape alone decides.
// `broadcast_slices`: each element of dx, which is shaped like x, is computed from its element of x and what its slice
// has.
//
// Slices of neighboring elements are rows. Where the last dimension is kept, slices are columns, neighbors of each
// other.
#pragma once

#include "divisor.h"
#include "executor.h"

namespace baracuda {

// An extent that offsets are divided by. On CUDA a division in 64 bits is a call, which a product is not: in double it
// is off by 1 at most, for offsets below 2^52.
struct Extent {
  int64_t size = 1;
  double inverse = 1;
  Divisor<int32_t> narrow{1};
  bool is_narrow = true;

  Extent() = default;
  explicit Extent(int64_t size) : size(size), is_narrow(0 < size && size < (int64_t(1) << 31)) {
    if (is_narrow) narrow = Divisor<int32_t>(size);
    if (size > 0) inverse = 1.0 / double(size);
  }
  BARACUDA_HD int64_t quotient(int64_t n) const {
    if (is_narrow && n >> 31 == 0) return narrow.quotient(int32_t(n));
    int64_t guess = int64_t(double(n) * inverse), rest = n - guess * size;
    return guess + (rest >= size) - (rest < 0);
  }
};

// Dimensions that are counted as one, the last fastest, and how far their elements are apart.
struct ElementDimensions {
  static constexpr int most = 10;
  int rank = 0;
  Extent extent[most];
  int64_t step[most];

  // Neighbors of the dimension before are one with it.
  void push(int64_t size, int64_t apart) {
    if (size == 1) return;
    if (rank > 0 && step[rank - 1] == size * apart) size *= extent[--rank].size;
    extent[rank] = Extent(size), step[rank++] = apart;
  }
  int64_t size() const {
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= extent[d].size;
    return count;
  }
  int64_t inner() const { return rank ? extent[rank - 1].size : 1; }
  BARACUDA_HD int64_t inner_step() const { return rank ? step[rank - 1] : 1; }
  BARACUDA_HD int64_t offset(int64_t index) const {
    int64_t elements = 0;
    for (int d = rank - 1; d > 0; --d) {
      int64_t rest = extent[d].quotient(index);
      elements += (index - rest * extent[d].size) * step[d];
      index = rest;
    }
    return rank ? elements + index * step[0] : 0;
  }
};

// y is [slices, columns]. The element e of the slice at a column is x[first + kept.offset(slice) + column +
// reduced.offset(e)].
struct ReduceShape {
  ElementDimensions kept, reduced;
  int64_t slices = 1, columns = 1, count = 1, first = 0;

  // x [batches, extents...], of which the first is reduced, the second kept, the third reduced, and so on.
  template <class Sizes>
  ReduceShape(int64_t batches, const Sizes& extents, int rank) {
    int64_t apart = 1;
    for (int d = 0; d < rank; ++d) apart *= extents[d];
    kept.push(batches, apart);
    for (int d = 0; d < rank; ++d) {
      apart = extents[d] ? apart / extents[d] : 0;
      if (d % 2 == 0)
        reduced.push(extents[d], apart);
      else if (d < rank - 1)
        kept.push(extents[d], apart);
      else
        columns = extents[d];
    }
    slices = kept.size(), count = reduced.size();
  }
  ReduceShape() = default;

  int64_t results() const { return slices * columns; }
  // Slices of neighbors, with no slices next to them.
  bool has_rows() const { return columns == 1 && reduced.inner_step() == 1; }
};

}  // namespace baracuda
