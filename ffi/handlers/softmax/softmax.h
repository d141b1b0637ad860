// What handlers of softmax and of other projections of rows share.
#pragma once

#include "kernels/row_gradient.h"

#include "handlers/softmax/rows.h"
#include BARACUDA_DRIVER(projection)
#include BARACUDA_DRIVER(rows)

namespace baracuda {
namespace {

// The gradient by `Rule` with the weights of `x`, which is called `name`; `weight(type)` gives the functor of weights.
template <class Rule, class MakeWeight>
ffi::Error row_gradient(const char* op, Device& device, const Rows& shape, const char* name, const Array& x,
                        const Array& dy, Output& workspace, Output& dx, const MakeWeight& weight) {
  return for_float(op, name, x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto weights = weight(type);
    RowGradient<T, decltype(weights), Rule> functor{{}, in<T>(x), in<T>(dy), out<T>(dx), weights};
    return to_error(op, run_rows(device.executor(*workspace), functor, shape.rows, shape.columns));
  });
}

}  // namespace
}  // namespace baracuda
