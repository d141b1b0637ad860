// The FFI targets of softmax and its logarithm, and of their gradients: rows [batches..., columns]. What is saved of a
// row, the logarithm of its sum of exponentials and what rounding took from it, has the shape [batches...].
#include "kernels/softmax.h"

#include "handlers/saved.h"
#include "handlers/softmax/softmax.h"

namespace baracuda {
namespace {

template <template <class> class Functor>
ffi::Error forward(const char* op, Device& device, const Array& x, Output& workspace, Output& y,
                   ffi::RemainingRets saved) {
  Rows shape(op, "x", x, *y);
  shape.checks.require(saved.size() == 0 || saved.size() == 2, "there must be 1 or 3 results, got ",
                       1 + int64_t(saved.size()));
  if (shape.checks.failed()) return shape.checks.error();
  void* of_rows[2] = {};
  for (size_t i = 0; i < saved.size(); ++i) {
    auto array = saved.get<ffi::AnyBuffer>(i);
    if (!array) return array.error();
    shape.by_row(i ? "rest" : "lse", **array, x, i ? wide(x.element_type()) : x.element_type());
    of_rows[i] = (*array)->untyped_data();
  }
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SavedLogSum<T> log_sum{static_cast<T*>(of_rows[0]), static_cast<Accumulator<T>*>(of_rows[1])};
    Functor<T> functor{in<T>(x), out<T>(y), log_sum};
    return to_error(op, project_rows(device.executor(*workspace), functor, shape.rows, shape.columns));
  });
}

template <class Rule>
ffi::Error gradient(const char* op, Device& device, const Array& x, const Array& lse, const Array& rest,
                    const Array& dy, Output& workspace, Output& dx) {
  Rows shape(op, "dy", dy, *dx);
  shape.checks.same_shape("x", x, "dy", dy).same_dtype("x", x, "dy", dy);
  shape.by_row("lse", lse, dy, dy.element_type());
  shape.by_row("rest", rest, dy, wide(dy.element_type()));
  if (shape.checks.failed()) return shape.checks.error();
  return row_gradient<Rule>(op, device, shape, "x", x, dy, workspace, dx, [&](auto type) {
    using T = typename decltype(type)::type;
    return SoftmaxWeight<T>{in<T>(lse), in<Accumulator<T>>(rest), 0, 0};
  });
}

ffi::Error softmax_call(Device device, Array x, Output workspace, Output y, ffi::RemainingRets saved) {
  return forward<Softmax>("softmax", device, x, workspace, y, saved);
}
ffi::Error log_softmax_call(Device device, Array x, Output workspace, Output y, ffi::RemainingRets saved) {
  return forward<LogSoftmax>("log_softmax", device, x, workspace, y, saved);
}
ffi::Error softmax_backward_call(Device device, Array x, Array lse, Array rest, Array dy, Output workspace, Output dx) {
  return gradient<WeightedFromMean>("softmax_backward", device, x, lse, rest, dy, workspace, dx);
}
ffi::Error log_softmax_tangent_call(Device device, Array x, Array lse, Array rest, Array t, Output workspace,
                                    Output dy) {
  return gradient<FromMean>("log_softmax_tangent", device, x, lse, rest, t, workspace, dy);
}
ffi::Error log_softmax_backward_call(Device device, Array x, Array lse, Array rest, Array dy, Output workspace,
                                     Output dx) {
  return gradient<WithoutSum>("log_softmax_backward", device, x, lse, rest, dy, workspace, dx);
}

BARACUDA_TARGET(softmax, softmax_call, operands<1>().Ret<Array>().Ret<Array>().RemainingRets());
BARACUDA_TARGET(log_softmax, log_softmax_call, operands<1>().Ret<Array>().Ret<Array>().RemainingRets());
BARACUDA_TARGET(softmax_backward, softmax_backward_call, operands<4>().Ret<Array>().Ret<Array>());
BARACUDA_TARGET(log_softmax_tangent, log_softmax_tangent_call, operands<4>().Ret<Array>().Ret<Array>());
BARACUDA_TARGET(log_softmax_backward, log_softmax_backward_call, operands<4>().Ret<Array>().Ret<Array>());

}  // namespace
}  // namespace baracuda
