// The FFI target of pooling.
#include "pool.h"

namespace baracuda {
namespace {

ffi::Error pool_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, Dimensions window,
                        Dimensions strides, double norm_type, bool channels_last) {
  constexpr const char* op = "lp_pool";
  Pooling pooling(op, "x", x, "the result", *y, window, strides, norm_type, channels_last);
  if (pooling.checks.failed()) return pooling.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, for_power<Accumulator<T>>(norm_type, [&](auto power) {
                      LpPool<T, decltype(power)> kernel{data<T>(x), power};
                      return reduce_windows(device.executor(), kernel, pooling.shape,
                                            static_cast<T*>(y->untyped_data()));
                    }));
  });
}

BARACUDA_TARGET(lp_pool, pool_handler, with_attributes(pool()));

}  // namespace
}  // namespace baracuda
