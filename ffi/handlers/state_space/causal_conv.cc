// The FFI target of causal convolutions.
#include "causal_conv.h"

namespace baracuda {
namespace {

ffi::Error conv_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer weight, ffi::AnyBuffer bias,
                        ffi::AnyBuffer state, ffi::AnyBuffer starts, ffi::Result<ffi::AnyBuffer> y, bool silu,
                        bool channels_last) {
  constexpr const char* op = "causal_conv1d";
  ConvArguments arguments{x, weight, bias, state, starts, silu, channels_last};
  if (auto problem = arguments.problem(op)) return *problem;
  Checks checks(op);
  checks.same_shape("y", *y, "x", x).same_dtype("y", *y, "x", x);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, stencil(device.executor(), arguments.conv<T>(), out<T>(y)));
  });
}

BARACUDA_TARGET(causal_conv1d, conv_handler,
                operands<5>().Ret<ffi::AnyBuffer>().Attr<bool>("silu").Attr<bool>("channels_last"));

}  // namespace
}  // namespace baracuda
