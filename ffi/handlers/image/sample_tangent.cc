// The FFI target of the tangent of images at positions: x, positions, and a tangent of each give that of y.
#include "sample.h"

namespace baracuda {
namespace {

ffi::Error tangent(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::AnyBuffer dx, ffi::AnyBuffer moved,
                   ffi::Result<ffi::AnyBuffer> dy, int64_t taps, int64_t padding, bool align_corners) {
  constexpr const char* op = "sample_tangent";
  Sampling sampling(op, x, positions, *dy, {taps, padding, align_corners});
  sampling.checks.same_shape("the tangent of x", dx, "x", x)
      .same_dtype("the tangent of x", dx, "x", x)
      .same_shape("the tangent of positions", moved, "positions", positions)
      .same_dtype("the tangent of positions", moved, "positions", positions);
  if (sampling.checks.failed()) return sampling.checks.error();
  if (sampling.is_empty() || sampling.shape.channels == 0) return ffi::Error::Success();
  return sampling.run([&](const auto& functor, auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    return to_error(op, sample_tangent(device.executor(), functor, sampling.shape, in<T>(x), in<Sum>(positions),
                                       in<T>(dx), in<Sum>(moved), out<T>(dy)));
  });
}

BARACUDA_TARGET(sample_tangent, tangent, with_samples(operands<4>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
