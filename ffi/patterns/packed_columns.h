// The packed columns pattern: y = x W, for weights W that are packed along their columns (kernels/packed/awq.h), and
// few rows of x. W is unpacked where it is used.
//
// Or W as floats, of T, which a library multiplies with.
//
// The rows of W are cut into parts, whose sums are added by halves: the order depends on the shape of W alone.
#pragma once

#include "../kernels/packed/awq.h"
#include "packed_rows.h"

namespace baracuda {

// x [batches, count, depth], y [batches, count, 8 words]; data [batches, depth, words], zero [batches, groups, words],
// scale [batches, groups, 8 words], of float32 or of 16 bits.
struct PackedColumns {
  int64_t batches, depth, words, groups, count, splits;
  RowDtype dtype, scale_dtype;
  const void* x;
  const uint32_t* data;
  const void* scale;
  const uint32_t* zero;
  void* y;

  BARACUDA_HD int64_t columns() const { return words * packed::word_columns; }
  BARACUDA_HD int64_t group_depth() const { return groups ? depth / groups : 1; }
  BARACUDA_HD float factor(int64_t batch, int64_t group, int64_t column) const {
    return element_at(scale, scale_dtype, (batch * groups + group) * columns() + column, 0.f);
  }
  // A weight, as the definition has it.
  BARACUDA_HD float weight(int64_t batch, int64_t k, int64_t column) const {
    int64_t group = k / group_depth(), word = column / packed::word_columns;
    int index = int(column % packed::word_columns);
    int q = packed::awq_field(data[(batch * depth + k) * words + word], index);
    return float(q - packed::awq_field(zero[(batch * groups + group) * words + word], index)) *
           factor(batch, group, column);
  }
};

}  // namespace baracuda
