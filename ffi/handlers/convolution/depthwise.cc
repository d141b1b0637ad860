// The FFI target of depthwise convolutions.
#include "depthwise.h"

namespace baracuda {

// Elsewhere (depthwise_half.cc).
extern template Status stencil_window(const Executor&, const Depthwise<Half>&, const Half*, Half*);
extern template Status stencil_window(const Executor&, const Depthwise<BFloat16>&, const BFloat16*, BFloat16*);

namespace {

ffi::Error depthwise_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer weight, ffi::AnyBuffer bias,
                             ffi::Result<ffi::AnyBuffer> y, Dimensions strides, Dimensions dilation, Dimensions before,
                             bool channels_last) {
  constexpr const char* op = "depthwise_conv";
  DepthwiseArguments arguments{x, weight, bias, *y, strides, dilation, before, channels_last};
  if (auto problem = arguments.problem(op, "y")) return *problem;
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, stencil_window(device.executor(), arguments.conv<T>(), in<T>(bias), out<T>(y)));
  });
}

BARACUDA_TARGET(depthwise_conv, depthwise_handler, with_steps(operands<3>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
