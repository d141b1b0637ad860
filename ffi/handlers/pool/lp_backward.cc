// The FFI target of gradients of LP pooling.
#include "lp.h"

namespace baracuda {
namespace {

ffi::Error backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer dy,
                            ffi::Result<ffi::AnyBuffer> dx, Dimensions window, Dimensions strides, double norm_type,
                            bool channels_last) {
  constexpr const char* op = "lp_pool_backward";
  LpPooling pooling(op, "x", x, "dy", dy, window, strides, norm_type, channels_last);
  pooling.checks.same_shape("y", y, "dy", dy)
      .dtype("y", y, wide(x.element_type()))
      .same_shape("the result", *dx, "x", x)
      .same_dtype("the result", *dx, "x", x);
  if (pooling.checks.failed()) return pooling.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(
        op, for_power<Accumulator<T>>(norm_type, [&](auto power) {
          LpPoolBackward<T, decltype(power)> kernel{data<T>(x), data<Accumulator<T>>(y), data<T>(dy), power};
          return gather_windows(device.executor(), kernel, pooling.shape, static_cast<T*>(dx->untyped_data()));
        }));
  });
}

BARACUDA_TARGET(lp_pool_backward, backward_handler, with_attributes(derivative()));

}  // namespace
}  // namespace baracuda
