// The packed rows pattern: y = W x, for packed weights W (kernels/packed) and few rows of x. A row of W is unpacked
// where it is used, and each weight is multiplied in the order of memory.
#pragma once

#include "unpack.h"

namespace baracuda {

// The dtypes of x and y. They are a parameter of the call and not of the kernels, which would be four times as many.
enum class RowDtype { f16, bf16, f32, f64 };

BARACUDA_HD double element_at(const void* x, RowDtype dtype, int64_t i, double) {
  return static_cast<const double*>(x)[i];
}
BARACUDA_HD float element_at(const void* x, RowDtype dtype, int64_t i, float) {
  if (dtype == RowDtype::bf16) return float(static_cast<const BFloat16*>(x)[i]);
  if (dtype == RowDtype::f16) return float(static_cast<const Half*>(x)[i]);
  return static_cast<const float*>(x)[i];
}
BARACUDA_HD void set_element(void* y, RowDtype dtype, int64_t i, double value) { static_cast<double*>(y)[i] = value; }
BARACUDA_HD void set_element(void* y, RowDtype dtype, int64_t i, float value) {
  if (dtype == RowDtype::bf16)
    static_cast<BFloat16*>(y)[i] = BFloat16(value);
  else if (dtype == RowDtype::f16)
    static_cast<Half*>(y)[i] = Half(value);
  else
    static_cast<float*>(y)[i] = value;
}

// x [batches, count, columns], y [batches, count, rows]; data [matrices, rows, blocks of a row]. A batch has the matrix
// of its number. Or, where `owner` is given, each `sharing` neighboring batches have `experts` matrices, of which
// `owner` names one for each batch; of a name that none has, y is 0.
template <class Format>
struct PackedRows {
  PackedBlocks<Format> weights;
  int64_t batches, matrices, rows, blocks, groups, count;
  RowDtype dtype;
  const void* x;
  void* y;
  const int32_t* owner;
  int64_t experts, sharing;

  BARACUDA_HD int64_t columns() const { return blocks * Format::block; }
  // Or -1.
  BARACUDA_HD int64_t matrix(int64_t batch) const {
    if (owner == nullptr) return batch;
    int64_t name = owner[batch];
    return 0 <= name && name < experts ? batch / sharing * experts + name : -1;
  }
};

}  // namespace baracuda
