// The FFI target of LP pooling.
#include "lp.h"

namespace baracuda {
namespace {

// Next to y, 16-bit floats may have it before it is rounded, in float32.
ffi::Error pool_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more,
                        Dimensions window, Dimensions strides, double norm_type, bool channels_last) {
  constexpr const char* op = "lp_pool";
  LpPooling pooling(op, "x", x, "the result", *y, window, strides, norm_type, channels_last);
  ffi::DataType dtype = x.element_type();
  void* unrounded = nullptr;
  pooling.checks.require(more.size() <= size_t(is_rounded(dtype)), "expected fewer results, got ", more.size() + 1);
  if (!pooling.checks.failed() && more.size() == 1) {
    auto second = more.get<ffi::AnyBuffer>(0);
    if (second.has_error()) return second.error();
    pooling.checks.same_shape("the second result", **second, "the result", *y)
        .dtype("the second result", **second, wide(dtype));
    unrounded = (*second)->untyped_data();
  }
  if (pooling.checks.failed()) return pooling.checks.error();
  return for_float(op, "x", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(op, for_power<Wide>(norm_type, [&](auto power) {
                      LpPool<T, decltype(power)> kernel{data<T>(x), static_cast<Wide*>(unrounded), power};
                      return reduce_windows(device.executor(), kernel, pooling.shape,
                                            static_cast<T*>(y->untyped_data()));
                    }));
  });
}

BARACUDA_TARGET(lp_pool, pool_handler, with_attributes(pool()));

}  // namespace
}  // namespace baracuda
