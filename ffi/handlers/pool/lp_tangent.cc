// The FFI target of tangents of LP pooling.
#include "lp.h"

namespace baracuda {
namespace {

ffi::Error tangent_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer t,
                           ffi::Result<ffi::AnyBuffer> out, Dimensions window, Dimensions strides, double norm_type,
                           bool channels_last) {
  constexpr const char* op = "lp_pool_tangent";
  LpPooling pooling(op, "x", x, "the result", *out, window, strides, norm_type, channels_last);
  pooling.checks.same_shape("t", t, "x", x)
      .same_dtype("t", t, "x", x)
      .same_shape("y", y, "the result", *out)
      .dtype("y", y, wide(x.element_type()));
  if (pooling.checks.failed()) return pooling.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, for_power<Accumulator<T>>(norm_type, [&](auto power) {
                      LpPoolTangent<T, decltype(power)> kernel{data<T>(x), data<Accumulator<T>>(y), data<T>(t), power};
                      return reduce_windows(device.executor(), kernel, pooling.shape,
                                            static_cast<T*>(out->untyped_data()));
                    }));
  });
}

BARACUDA_TARGET(lp_pool_tangent, tangent_handler, with_attributes(derivative()));

}  // namespace
}  // namespace baracuda
