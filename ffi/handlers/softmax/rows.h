// What handlers of functions of rows check: x of shape [batches..., columns], a result of its shape, and numbers of
// rows, [batches...].
#pragma once

#include "handlers/target.h"

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

struct Rows {
  Checks checks;
  int64_t rows = 0, columns = 0;

  Rows(const char* op, const char* name, const Array& x, const Array& result) : checks(op) {
    auto dims = x.dimensions();
    checks.require(dims.size() >= 1, name, " must have rank 1 or more, got ", describe(dims))
        .same_shape("the result", result, name, x)
        .same_dtype("the result", result, name, x);
    if (!checks.failed()) rows = product(dims, 0, dims.size() - 1), columns = dims.back();
  }
  // A number for each row of x.
  void by_row(const char* name, const Array& array, const Array& x, ffi::DataType dtype) {
    auto dims = x.dimensions(), got = array.dimensions();
    checks
        .require(got.size() + 1 == dims.size() && std::equal(got.begin(), got.end(), dims.begin()), name,
                 " must have the shape of x without the last dimension, ", describe(dims), ", got ", describe(got))
        .dtype(name, array, dtype);
  }
};

}  // namespace
}  // namespace baracuda
