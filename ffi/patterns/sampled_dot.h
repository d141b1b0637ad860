// The sampled dot products pattern: each entry names a row of x and a row of y, and has the dot product of each pair of
// their heads, which are so many neighboring columns: the products of x and the transpose of y that are sampled.
#pragma once

#include "../kernels/segment.h"
#include "executor.h"

namespace baracuda {

struct SampledDotShape {
  int64_t batches, x_rows, y_rows, entries, heads, width;
  int64_t sharing;  // how many neighboring batches have the same entries

  BARACUDA_HD int64_t dots() const { return batches * entries * heads; }
};

// x [batches, x_rows, heads * width], y alike, out [batches, entries, heads]. An entry that names no row of x or y has
// 0: one that is not below how many there are, as negative ones are without a sign.
template <class T>
struct SampledDot {
  using Sum = Accumulator<T>;
  SampledDotShape shape;
  const T *x, *y;
  const uint32_t *x_row, *y_row;
  uint32_t x_rows, y_rows;
  Sum* out;

  // Where the columns of a dot product begin in x and y; null where it is 0.
  BARACUDA_HD void operands(int64_t dot, const T*& from_x, const T*& from_y) const {
    int64_t global_entry = dot, batch = 0;
    if (shape.heads > 1)  // on a GPU, divisions of 64 bits would take longer than all else
      global_entry = dot >> 32 ? dot / shape.heads : uint32_t(dot) / uint32_t(shape.heads);
    int64_t head = dot - global_entry * shape.heads, entry = global_entry;
    if (shape.batches > 1) {
      batch = global_entry / shape.entries;
      entry = batch / shape.sharing * shape.entries + (global_entry - batch * shape.entries);
    }
    uint32_t a = x_row[entry], b = y_row[entry];
    from_x = from_y = nullptr;
    if (a >= x_rows || b >= y_rows) return;
    int64_t columns = shape.heads * shape.width;
    from_x = x + (batch * shape.x_rows + a) * columns + head * shape.width;
    from_y = y + (batch * shape.y_rows + b) * columns + head * shape.width;
  }
};

}  // namespace baracuda
