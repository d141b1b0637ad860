// FFI targets of logarithms of sums of exponentials of segments.
#include "kernels/segment_log_sum_exp.h"
#include "segment.h"

namespace baracuda {
namespace {

// The second result, what rounding took from the first, is there when a gradient or the caller needs it.
ffi::Error log_sum_exp_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                               ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                               ffi::RemainingRets more, int64_t empty_bits) {
  constexpr const char* op = "segment_logsumexp";
  Reduction reduction(op, data, perm, offsets, *y);
  Checks& checks = reduction.checks;
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  void* rest = nullptr;
  if (more.size() == 1) {
    auto second = more.get<ffi::AnyBuffer>(0);
    if (second.has_error()) return second.error();
    bool wide = data.element_type() == ffi::DataType::F64;
    checks.same_shape("rest", **second, "the result", *y)
        .dtype("rest", **second, wide ? ffi::DataType::F64 : ffi::DataType::F32);
    if (checks.failed()) return checks.error();
    rest = (*second)->untyped_data();
  }
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SegmentLogSumExp<T> reducer{static_cast<T*>(y->untyped_data()), static_cast<Accumulator<T>*>(rest),
                                from_bits<T>(empty_bits)};
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

ffi::Error log_sum_exp_backward_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                        ffi::AnyBuffer y, ffi::AnyBuffer rest, ffi::AnyBuffer dy,
                                        ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_logsumexp_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  bool wide = dy.element_type() == ffi::DataType::F64;
  gradient.checks.same_shape("data", data, "the result", *dx)
      .same_dtype("data", data, "dy", dy)
      .same_shape("y", y, "dy", dy)
      .same_dtype("y", y, "dy", dy)
      .same_shape("rest", rest, "dy", dy)
      .dtype("rest", rest, wide ? ffi::DataType::F64 : ffi::DataType::F32);
  return gradient.run<SegmentLogSumExpBackward>(op, device, dy, *dx, [&](auto& broadcaster, auto type) {
    using T = typename decltype(type)::type;
    broadcaster.x = static_cast<const T*>(data.untyped_data());
    broadcaster.y = static_cast<const T*>(y.untyped_data());
    broadcaster.rest = static_cast<const Accumulator<T>*>(rest.untyped_data());
  });
}

BARACUDA_TARGET(segment_logsumexp, log_sum_exp_handler,
                reduction(operands<3>()).RemainingRets().Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_logsumexp_backward, log_sum_exp_backward_handler, gradient<6>());

}  // namespace
}  // namespace baracuda
