// The tile pattern: x [batches, n_1, ..., n_k] is laid out r_1 times along its first axis, r_2 times along its second,
// and so on, which gives y [batches, r_1 n_1, ..., r_k n_k].
//
// It has two directions. `copy_elements`: each element of y takes its element of x. `reduce_copies`: each element of x
// reduces its copies in y. A row is a run of neighbors along the last axis; the copies of a row are numbered in the
// order in which they lie in memory, the last axis fastest.
#pragma once

#include "divisor.h"
#include "executor.h"

namespace baracuda {

inline constexpr int tile_axes = 8;

struct TileShape {
  int64_t batches = 1;
  int axes = 1;
  int64_t size[tile_axes] = {1}, repeats[tile_axes] = {1};

  int64_t inner() const { return size[axes - 1]; }
  int64_t inner_repeats() const { return repeats[axes - 1]; }
  int64_t elements() const {  // of x, in a batch
    int64_t count = 1;
    for (int k = 0; k < axes; ++k) count *= size[k];
    return count;
  }
  int64_t copies() const {  // of each element
    int64_t count = 1;
    for (int k = 0; k < axes; ++k) count *= repeats[k];
    return count;
  }
  int64_t x_elements() const { return batches * elements(); }
  int64_t y_elements() const { return x_elements() * copies(); }
};

// The geometry as rows see it; neither sizes nor repeats may be 0.
template <class Index>
struct Tiles {
  int outer;  // all axes but the last
  Divisor<Index> inner, inner_repeats, y_inner;
  Divisor<Index> size[tile_axes - 1], repeats[tile_axes - 1];
  Index x_stride[tile_axes - 1], y_stride[tile_axes - 1];
  Index x_batch, y_batch;

  explicit Tiles(const TileShape& shape)
      : outer(shape.axes - 1),
        inner(shape.inner()),
        inner_repeats(shape.inner_repeats()),
        y_inner(shape.inner() * shape.inner_repeats()) {
    int64_t x = shape.inner(), y = x * shape.inner_repeats();
    for (int k = outer - 1; k >= 0; --k) {
      size[k] = Divisor<Index>(shape.size[k]), repeats[k] = Divisor<Index>(shape.repeats[k]);
      x_stride[k] = Index(x), y_stride[k] = Index(y);
      x *= shape.size[k], y *= shape.size[k] * shape.repeats[k];
    }
    x_batch = Index(x), y_batch = Index(y);
  }

  // The first elements of a row of x and of a row of y that is made of it.
  struct Rows {
    Index x, y;
  };
  // Rows of y are counted so that those made of one row of x come close together: a row of x is then read from memory
  // once.
  BARACUDA_HD Rows rows(Index index) const {
    Rows rows{0, 0};
    for (int k = tile_axes - 2; k >= 0; --k) {
      if (k >= outer) continue;
      Index copy = split(repeats[k], index), i = split(size[k], index);
      rows.x += i * x_stride[k];
      rows.y += (i + copy * size[k].value) * y_stride[k];
    }
    rows.x += index * x_batch, rows.y += index * y_batch;
    return rows;
  }
  // The first copy of a row of x.
  BARACUDA_HD Index first(Index row) const {
    Index element = 0;
    for (int k = tile_axes - 2; k >= 0; --k)
      if (k < outer) element += split(size[k], row) * y_stride[k];
    return element + row * y_batch;
  }
  // How far a copy is from the first one.
  BARACUDA_HD Index offset(Index copy) const {
    if (outer == 0) return copy * inner.value;
    Index elements = split(inner_repeats, copy) * inner.value;
    for (int k = tile_axes - 2; k >= 0; --k)
      if (k < outer) elements += (k == 0 ? copy : split(repeats[k], copy)) * size[k].value * y_stride[k];
    return elements;
  }

 private:
  // Divides `index`, and returns the rest.
  static BARACUDA_HD Index split(const Divisor<Index>& by, Index& index) {
    Index quotient = by.quotient(index), rest = index - quotient * by.value;
    index = quotient;
    return rest;
  }
};

}  // namespace baracuda
