// The FFI target of gradients of maxima of windows.
#include "kernels/pool.h"

#include "pool.h"

namespace baracuda {
namespace {

// After the cotangent, lists of windows, or none.
ffi::Error max_backward_handler(Device device, ffi::AnyBuffer index, ffi::AnyBuffer dy, ffi::RemainingArgs begins,
                                ffi::Result<ffi::AnyBuffer> dx, Dimensions window, Dimensions strides,
                                Dimensions dilation, Dimensions padding, bool adaptive, bool channels_last) {
  constexpr const char* op = "max_pool_backward";
  Pooling pooling(op, "the result", *dx, "dy", dy, {window, strides, dilation, padding, adaptive, channels_last},
                  &begins);
  if (pooling.checks.failed()) return pooling.checks.error();
  pooling.checks.same_shape("index", index, "dy", dy);
  int width = width_of_args(pooling.checks, "index", index, pooling.shape);
  if (pooling.checks.failed()) return pooling.checks.error();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    MaxPoolBackward<T> kernel{{data<char>(index), width}, data<T>(dy)};
    return to_error(op, gather_windows(device.executor(), kernel, pooling.shape, static_cast<T*>(dx->untyped_data())));
  });
}

BARACUDA_TARGET(max_pool_backward, max_backward_handler,
                with_windows(operands<2>().RemainingArgs().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
