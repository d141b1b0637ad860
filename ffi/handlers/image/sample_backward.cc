// The FFI target of the cotangent of positions at which images are: x, positions and that of y give it. The cotangent
// of x is a sum of weighted rows, which `segment_weighted_sum` forms.
#include "sample.h"

namespace baracuda {
namespace {

ffi::Error backward(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::AnyBuffer dy,
                    ffi::Result<ffi::AnyBuffer> moved, int64_t taps, int64_t padding, bool align_corners) {
  constexpr const char* op = "sample_backward";
  Sampling sampling(op, x, positions, dy, {taps, padding, align_corners});
  sampling.checks.same_shape("the result", *moved, "positions", positions)
      .same_dtype("the result", *moved, "positions", positions);
  if (sampling.checks.failed()) return sampling.checks.error();
  if (sampling.is_empty()) return ffi::Error::Success();
  return sampling.run([&](const auto& functor, auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    return to_error(op, sample_backward(device.executor(), functor, sampling.shape, in<T>(x), in<Sum>(positions),
                                        in<T>(dy), out<Sum>(moved)));
  });
}

BARACUDA_TARGET(sample_backward, backward, with_samples(operands<3>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
