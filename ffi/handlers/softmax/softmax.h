// What handlers of functions of rows share: x of shape [batches..., columns], and results of its shape.
#pragma once

#include "kernels/row_gradient.h"

#include "handlers/target.h"
#include BARACUDA_DRIVER(projection)
#include BARACUDA_DRIVER(rows)

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
};

// The gradient by `Rule` with the weights of `x`, which is called `name`; `weight(type)` gives the functor of weights.
template <class Rule, class MakeWeight>
ffi::Error row_gradient(const char* op, Device& device, const Rows& shape, const char* name, const Array& x,
                        const Array& dy, Output& dx, const MakeWeight& weight) {
  return for_float(op, name, x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto weights = weight(type);
    RowGradient<T, decltype(weights), Rule> functor{{}, in<T>(x), in<T>(dy), out<T>(dx), weights};
    return to_error(op, run_rows(device.executor(), functor, shape.rows, shape.columns));
  });
}

}  // namespace
}  // namespace baracuda
