// The slice pattern: a block of an array [batches, n_1, ..., n_k] that begins where the device says, and an array
// [batches, m_1, ..., m_k] of its size. A start is moved so far that the block is inside; or its elements outside are
// left out, and 0 where they are read.
#pragma once

#include "divisor.h"
#include "executor.h"

namespace baracuda {

inline constexpr int slice_axes = 8;

// An axis of the block: `size` elements, which begin a whole number of units on, `most` at most; which number is in
// place `start` of the starts. A step goes `stride` elements of the array.
struct SliceAxis {
  int64_t size, stride, unit, most;
  int start;

  BARACUDA_HD int64_t length() const { return most * unit + size; }
};

struct SliceShape {
  int axes = 0;
  SliceAxis axis[slice_axes];
  int64_t batches = 1, elements = 1, whole_elements = 1;  // those of a batch of the block, and of the array
  int64_t starts = 0, sharing = 1;                        // numbers for each batch of them, which so many batches share
  const void* start = nullptr;
  bool is_wide = false;  // int64, not int32
  bool leaves_out = false;

  // The next axis, after the others. One along which the block is whole is part of the axis before it.
  void add(int64_t n, int64_t m) {
    elements *= m, whole_elements *= n;
    if (axes > 0 && m == n) {
      SliceAxis& last = axis[axes - 1];
      last.size *= n, last.unit *= n;
      for (int k = 0; k < axes - 1; ++k) axis[k].stride *= n;
    } else {
      for (int k = 0; k < axes; ++k) axis[k].stride *= n;
      axis[axes++] = {m, 1, 1, n - m, int(starts)};
    }
    ++starts;
  }
  // The same in wider elements, `width` of the old ones, which divides all but the starts.
  void widen(int64_t width) {
    if (width == 1) return;
    elements /= width, whole_elements /= width;
    for (int k = 0; k < axes; ++k)
      if (k == axes - 1)
        axis[k].size /= width, axis[k].unit /= width;
      else
        axis[k].stride /= width;
  }
  // Where the block of a batch begins along an axis.
  template <class Index>
  BARACUDA_HD int64_t first(Index batch, int k) const {
    int64_t at = int64_t(batch / Index(sharing)) * starts + axis[k].start;
    int64_t first = is_wide ? static_cast<const int64_t*>(start)[at] : static_cast<const int32_t*>(start)[at];
    if (!leaves_out) first = first < 0 ? 0 : first > axis[k].most ? axis[k].most : first;
    return first * axis[k].unit;
  }
  // Whether position `at` of an axis is in the array.
  BARACUDA_HD bool has(int k, int64_t at) const { return !leaves_out || (0 <= at && at < axis[k].length()); }
};

}  // namespace baracuda
