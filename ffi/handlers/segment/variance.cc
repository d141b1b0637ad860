// FFI targets of variances of segments, and of their roots.
#include "kernels/segment_variance.h"

#include "segment.h"

namespace baracuda {
namespace {

// The second and third results, what the gradient reads, are there when a gradient or the caller needs them.
ffi::Error variance_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                            ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                            ffi::RemainingRets more, double ddof, bool root, int64_t empty_bits) {
  constexpr const char* op = "segment_var";
  Reduction reduction(op, data, perm, offsets, *y);
  Checks& checks = reduction.checks;
  checks.require(more.size() == 0 || more.size() == 2, "expected one or three results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  void *mean = nullptr, *scale = nullptr;
  if (more.size() == 2) {
    auto second = more.get<ffi::AnyBuffer>(0), third = more.get<ffi::AnyBuffer>(1);
    if (second.has_error()) return second.error();
    if (third.has_error()) return third.error();
    checks.same_shape("the mean", **second, "the result", *y)
        .dtype("the mean", **second, wide_of(data))
        .same_shape("the scale", **third, "the result", *y)
        .dtype("the scale", **third, wide_of(data));
    if (checks.failed()) return checks.error();
    mean = (*second)->untyped_data(), scale = (*third)->untyped_data();
  }
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    SegmentVariance<T> reducer{out<T>(y), static_cast<Wide*>(mean), static_cast<Wide*>(scale), Wide(ddof),
                               root,      from_bits<T>(empty_bits)};
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

ffi::Error variance_backward_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                     ffi::AnyBuffer mean, ffi::AnyBuffer scale, ffi::AnyBuffer dy,
                                     ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_var_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.checks.same_shape("data", data, "the result", *dx)
      .same_dtype("data", data, "dy", dy)
      .same_shape("the mean", mean, "dy", dy)
      .dtype("the mean", mean, wide_of(data))
      .same_shape("the scale", scale, "dy", dy)
      .dtype("the scale", scale, wide_of(data));
  return gradient.run<SegmentVarianceBackward>(op, device, dy, *dx, [&](auto& broadcaster, auto type) {
    using T = typename decltype(type)::type;
    broadcaster.x = in<T>(data);
    broadcaster.mean = in<Accumulator<T>>(mean), broadcaster.scale = in<Accumulator<T>>(scale);
  });
}

BARACUDA_TARGET(
    segment_var, variance_handler,
    reduction(operands<3>()).RemainingRets().Attr<double>("ddof").Attr<bool>("root").Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_var_backward, variance_backward_handler, gradient<6>());

}  // namespace
}  // namespace baracuda
