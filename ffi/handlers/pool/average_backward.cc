// The FFI target of gradients of averages of windows.
#include "kernels/pool.h"

#include "pool.h"

namespace baracuda {
namespace {

ffi::Error average_backward_handler(Device device, ffi::AnyBuffer dy, ffi::RemainingArgs begins,
                                    ffi::Result<ffi::AnyBuffer> dx, Dimensions window, Dimensions strides,
                                    Dimensions dilation, Dimensions padding, bool adaptive, bool channels_last,
                                    bool counts_padding, double divisor) {
  constexpr const char* op = "avg_pool_backward";
  Pooling pooling(op, "the result", *dx, "dy", dy, {window, strides, dilation, padding, adaptive, channels_last},
                  &begins);
  if (pooling.checks.failed()) return pooling.checks.error();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    AveragePoolBackward<T> kernel{data<T>(dy), {counts_padding, divisor}};
    return to_error(op, gather_windows(device.executor(), kernel, pooling.shape, static_cast<T*>(dx->untyped_data())));
  });
}

BARACUDA_TARGET(avg_pool_backward, average_backward_handler,
                with_windows(operands<1>().RemainingArgs().Ret<ffi::AnyBuffer>())
                    .Attr<bool>("counts_padding")
                    .Attr<double>("divisor"));

}  // namespace
}  // namespace baracuda
