// The FFI target of averages of windows.
#include "kernels/pool.h"

#include "pool.h"

namespace baracuda {
namespace {

ffi::Error average_handler(Device device, ffi::AnyBuffer x, ffi::RemainingArgs begins, ffi::Result<ffi::AnyBuffer> y,
                           Dimensions window, Dimensions strides, Dimensions dilation, Dimensions padding,
                           bool adaptive, bool channels_last, bool counts_padding, double divisor) {
  constexpr const char* op = "avg_pool";
  Pooling pooling(op, "x", x, "the result", *y, {window, strides, dilation, padding, adaptive, channels_last}, &begins);
  if (pooling.checks.failed()) return pooling.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    AveragePool<T> kernel{data<T>(x), {counts_padding, divisor}};
    return to_error(op, reduce_windows(device.executor(), kernel, pooling.shape, static_cast<T*>(y->untyped_data())));
  });
}

BARACUDA_TARGET(avg_pool, average_handler,
                with_windows(operands<1>().RemainingArgs().Ret<ffi::AnyBuffer>())
                    .Attr<bool>("counts_padding")
                    .Attr<double>("divisor"));

}  // namespace
}  // namespace baracuda
