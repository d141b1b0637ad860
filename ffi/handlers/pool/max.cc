// The FFI target of maxima of windows.
#include "kernels/pool.h"

#include "pool.h"

namespace baracuda {
namespace {

// After x, lists of windows, or none; after y the indices, on request.
ffi::Error max_handler(Device device, ffi::AnyBuffer x, ffi::RemainingArgs begins, ffi::Result<ffi::AnyBuffer> y,
                       ffi::RemainingRets more, Dimensions window, Dimensions strides, Dimensions dilation,
                       Dimensions padding, bool adaptive, bool channels_last) {
  constexpr const char* op = "max_pool";
  Pooling pooling(op, "x", x, "the result", *y, {window, strides, dilation, padding, adaptive, channels_last}, &begins);
  Checks& checks = pooling.checks;
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  Args<char> args{nullptr, 4};
  if (more.size() == 1) {
    auto index = more.get<ffi::AnyBuffer>(0);
    if (index.has_error()) return index.error();
    checks.same_shape("the second result", **index, "the result", *y);
    args = {static_cast<char*>((*index)->untyped_data()),
            width_of_args(checks, "the second result", **index, pooling.shape)};
    if (checks.failed()) return checks.error();
  }
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto reduce = [&](auto indexed) {
      MaxPool<T, indexed.value> kernel{data<T>(x), args};
      return reduce_windows(device.executor(), kernel, pooling.shape, static_cast<T*>(y->untyped_data()));
    };
    return to_error(op, more.size() == 1 ? reduce(std::true_type{}) : reduce(std::false_type{}));
  });
}

BARACUDA_TARGET(max_pool, max_handler,
                with_windows(operands<1>().RemainingArgs().Ret<ffi::AnyBuffer>().RemainingRets()));

}  // namespace
}  // namespace baracuda
