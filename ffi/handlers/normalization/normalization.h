// What handlers of normalizations share: x of shape [batches..., columns], and parameters [some of the batches...,
// columns], each of which serves neighboring rows.
#pragma once

#include <memory>

#include "kernels/normalize.h"

#include "handlers/saved.h"
#include "handlers/target.h"

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

// The checks of what belongs to x, and of a number of each of its rows.
struct Normalized {
  Checks checks;
  int64_t rows = 0;
  ffi::DataType dtype;

  Normalized(const char* op, const Array& x) : checks(op), dtype(x.element_type()) {}
  void like(const char* name, const Array& array, const char* other, const Array& of) {
    checks.same_shape(name, array, other, of).same_dtype(name, array, other, of);
  }
  void like_x(const char* name, const Array& array, const Array& x) { like(name, array, "x", x); }
  // A number of each row, as it is computed.
  void by_row(const char* name, const Array& array) {
    checks.dtype(name, array, wide(dtype))
        .require(int64_t(array.element_count()) == rows, name, " must have ", rows, " elements, got ",
                 describe(array.dimensions()));
  }
};

struct NormalizedRows : Normalized {
  int64_t columns = 0;

  NormalizedRows(const char* op, const Array& x) : Normalized(op, x) {
    auto dims = x.dimensions();
    checks.require(dims.size() >= 1, "x must have rank 1 or more, got ", describe(dims));
    if (!checks.failed()) rows = product(dims, 0, dims.size() - 1), columns = dims.back();
  }
  // Numbers of each column, of whole neighboring rows.
  void by_column(const char* name, const Array& array) {
    auto dims = array.dimensions();
    int64_t count = dims.size() ? product(dims, 0, dims.size() - 1) : 0;
    checks
        .require(dims.size() >= 1 && dims.back() == columns && count > 0 && rows % count == 0, name,
                 " must have shape [parts of the rows..., ", columns, "], got ", describe(dims))
        .require(array.element_type() == dtype || array.element_type() == wide(dtype), name,
                 " must have the dtype of x or the one that is computed in, got type ", int(array.element_type()));
  }
  // With a weight that was checked.
  NormalizedShape with(const Array& weight) const {
    int64_t count = product(weight.dimensions(), 0, weight.dimensions().size() - 1);
    return {columns, rows / count};
  }
};

// The numbers of columns of an array; on a CPU as they are computed with, so that loops vectorize.
template <class T>
class Columns {
 public:
  using Wide = Accumulator<T>;

  explicit Columns(const Array& array) {
    if (array.element_type() == wide(array.element_type())) {
      numbers.wide = in<Wide>(array);
      return;
    }
    numbers.narrow = in<T>(array);
#ifndef BARACUDA_CUDA
    int64_t count = int64_t(array.element_count());
    widened_.reset(new Wide[count]);
    for (int64_t i = 0; i < count; ++i) widened_[i] = Wide(numbers.narrow[i]);
    numbers.wide = widened_.get();
#endif
  }
  ColumnNumbers<T> numbers;

 private:
  std::unique_ptr<Wide[]> widened_;
};

}  // namespace
}  // namespace baracuda
