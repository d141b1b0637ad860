// The FFI targets of projections on the simplex, and of their gradients: rows [batches..., columns].
#include "kernels/sparsemax.h"

#include "handlers/softmax/softmax.h"

namespace baracuda {
namespace {

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
ffi::Error backward(const char* op, Device& device, const Array& y, const Array& dy, Output& workspace, Output& dx) {
  Rows shape(op, "dy", dy, *dx);
  shape.checks.same_shape("y", y, "dy", dy).same_dtype("y", y, "dy", dy);
  if (shape.checks.failed()) return shape.checks.error();
  return row_gradient<WeightedFromMean>(op, device, shape, "y", y, dy, workspace, dx, [](auto) { return Weight{}; });
}

ffi::Error sparsemax_call(Device device, Array x, Output y) { return project<Sparsemax>("sparsemax", device, x, y); }
ffi::Error entmax15_call(Device device, Array x, Output y) { return project<Entmax15>("entmax15", device, x, y); }
ffi::Error sparsemax_backward_call(Device device, Array y, Array dy, Output workspace, Output dx) {
  return backward<SupportWeight>("sparsemax_backward", device, y, dy, workspace, dx);
}
ffi::Error entmax15_backward_call(Device device, Array y, Array dy, Output workspace, Output dx) {
  return backward<RootWeight>("entmax15_backward", device, y, dy, workspace, dx);
}

BARACUDA_TARGET(sparsemax, sparsemax_call, operands<1>().Ret<Array>());
BARACUDA_TARGET(entmax15, entmax15_call, operands<1>().Ret<Array>());
BARACUDA_TARGET(sparsemax_backward, sparsemax_backward_call, operands<2>().Ret<Array>().Ret<Array>());
BARACUDA_TARGET(entmax15_backward, entmax15_backward_call, operands<2>().Ret<Array>().Ret<Array>());

}  // namespace
}  // namespace baracuda
