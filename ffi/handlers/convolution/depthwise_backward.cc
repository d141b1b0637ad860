// The FFI target of depthwise convolutions' gradients.
#include "depthwise.h"

namespace baracuda {

// Elsewhere (depthwise_backward_half.cc).
extern template Status stencil_window_backward(Executor, const Depthwise<Half>&, const Half*, Half*, Half*, Half*);
extern template Status stencil_window_backward(Executor, const Depthwise<BFloat16>&, const BFloat16*, BFloat16*,
                                               BFloat16*, BFloat16*);

namespace {

ffi::Error depthwise_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer weight, ffi::AnyBuffer dy,
                                      ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx,
                                      ffi::Result<ffi::AnyBuffer> dweight, ffi::Result<ffi::AnyBuffer> dbias,
                                      Dimensions strides, Dimensions dilation, Dimensions before, bool channels_last) {
  constexpr const char* op = "depthwise_conv_backward";
  DepthwiseArguments arguments{x, weight, *dbias, dy, strides, dilation, before, channels_last};
  if (auto problem = arguments.problem(op, "dy")) return *problem;
  Checks checks(op);
  auto same = [&](const char* name, const ffi::AnyBuffer& a, const char* other, const ffi::AnyBuffer& b) {
    checks.same_shape(name, a, other, b).same_dtype(name, a, other, b);
  };
  same("dx", *dx, "x", x), same("dweight", *dweight, "weight", weight);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, stencil_window_backward(device.executor(*workspace), arguments.conv<T>(), in<T>(dy), out<T>(dx),
                                                out<T>(dweight), out<T>(dbias)));
  });
}

BARACUDA_TARGET(
    depthwise_conv_backward, depthwise_backward_handler,
    with_steps(operands<3>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
