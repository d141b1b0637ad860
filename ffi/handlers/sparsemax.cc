// The FFI targets of projections on the simplex, and of their gradients: rows [batches..., columns].
#include "kernels/sparsemax.h"

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

template <template <class> class Projection>
ffi::Error project(const char* op, Device& device, const Array& x, Output& y) {
  Rows shape(op, "x", x, *y);
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Projection<T> projection{in<T>(x), out<T>(y)};
    return to_error(op, project_rows(device.executor(), projection, shape.rows, shape.columns));
  });
}

template <class Weight>
ffi::Error backward(const char* op, Device& device, const Array& y, const Array& dy, Output& dx) {
  Rows shape(op, "dy", dy, *dx);
  shape.checks.same_shape("y", y, "dy", dy).same_dtype("y", y, "dy", dy);
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    ProjectionBackward<T, Weight> functor{in<T>(y), in<T>(dy), out<T>(dx)};
    return to_error(op, run_rows(device.executor(), functor, shape.rows, shape.columns));
  });
}

ffi::Error sparsemax_call(Device device, Array x, Output y) { return project<Sparsemax>("sparsemax", device, x, y); }
ffi::Error entmax15_call(Device device, Array x, Output y) { return project<Entmax15>("entmax15", device, x, y); }
ffi::Error sparsemax_backward_call(Device device, Array y, Array dy, Output dx) {
  return backward<SupportWeight>("sparsemax_backward", device, y, dy, dx);
}
ffi::Error entmax15_backward_call(Device device, Array y, Array dy, Output dx) {
  return backward<RootWeight>("entmax15_backward", device, y, dy, dx);
}

BARACUDA_TARGET(sparsemax, sparsemax_call, operands<1>().Ret<Array>());
BARACUDA_TARGET(entmax15, entmax15_call, operands<1>().Ret<Array>());
BARACUDA_TARGET(sparsemax_backward, sparsemax_backward_call, operands<2>().Ret<Array>());
BARACUDA_TARGET(entmax15_backward, entmax15_backward_call, operands<2>().Ret<Array>());

}  // namespace
}  // namespace baracuda
