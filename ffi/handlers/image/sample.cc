// The FFI target of images at positions.
#include "sample.h"

namespace baracuda {
namespace {

ffi::Error forward(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::Result<ffi::AnyBuffer> y,
                   int64_t taps, int64_t padding, bool align_corners) {
  constexpr const char* op = "sample";
  Sampling sampling(op, x, positions, *y, {taps, padding, align_corners});
  if (sampling.checks.failed()) return sampling.checks.error();
  if (sampling.is_empty() || sampling.shape.channels == 0) return ffi::Error::Success();
  return sampling.run([&](const auto& functor, auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    return to_error(op, sample(device.executor(), functor, sampling.shape, in<T>(x), in<Sum>(positions), out<T>(y)));
  });
}

BARACUDA_TARGET(sample, forward, with_samples(operands<2>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
