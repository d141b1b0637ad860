// The FFI target of causal convolutions' gradients.
#include "causal_conv.h"

namespace baracuda {
namespace {

ffi::Error conv_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer weight, ffi::AnyBuffer bias,
                                 ffi::AnyBuffer state, ffi::AnyBuffer starts, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx,
                                 ffi::Result<ffi::AnyBuffer> dweight, ffi::Result<ffi::AnyBuffer> dbias,
                                 ffi::Result<ffi::AnyBuffer> dstate, bool silu, bool channels_last) {
  constexpr const char* op = "causal_conv1d_backward";
  ConvArguments arguments{x, weight, bias, state, starts, silu, channels_last};
  if (auto problem = arguments.problem(op)) return *problem;
  Checks checks(op);
  auto same = [&](const char* name, const ffi::AnyBuffer& a, const char* other, const ffi::AnyBuffer& b) {
    checks.same_shape(name, a, other, b).same_dtype(name, a, other, b);
  };
  same("dy", dy, "x", x), same("dx", *dx, "x", x), same("dweight", *dweight, "weight", weight);
  same("dbias", *dbias, "bias", bias), same("dstate", *dstate, "state", state);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, stencil_backward(device.executor(*workspace), arguments.conv<T>(), in<T>(dy), out<T>(dx),
                                         out<T>(dweight), out<T>(dbias), out<T>(dstate)));
  });
}

BARACUDA_TARGET(causal_conv1d_backward, conv_backward_handler,
                operands<6>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Attr<bool>("silu")
                    .Attr<bool>("channels_last"));

}  // namespace
}  // namespace baracuda
