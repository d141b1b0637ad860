// FFI targets of sums of segments.
#include "segment.h"

namespace baracuda {
namespace {

ffi::Error sum_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                       ffi::RemainingArgs more, ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                       int64_t empty_bits) {
  constexpr const char* op = "segment_sum";
  Reduction reduction(op, data, perm, offsets, *y, optional_operand(more), /*may_widen=*/true);
  reduction.checks.require(more.size() <= 1, "expected three or four operands, got ", more.size() + 3);
  if (reduction.checks.failed()) return reduction.checks.error();
  bool widens = y->element_type() != data.element_type();
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = Modular<typename decltype(type)::type>;
    if constexpr (is_half<T>)
      if (widens) {
        SegmentSum<T, float> sum{static_cast<float*>(y->untyped_data()), from_bits<float>(empty_bits)};
        return reduction.run(op, device, sum, data, *workspace);
      }
    return reduction.run(op, device, SegmentSum<T>{static_cast<T*>(y->untyped_data()), from_bits<T>(empty_bits)}, data,
                         *workspace);
  });
}

ffi::Error sum_backward_handler(Device device, ffi::AnyBuffer perm, ffi::AnyBuffer offsets, ffi::AnyBuffer dy,
                                ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_sum_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  return gradient.run<SegmentSumBackward>(op, device, dy, *dx, [](auto&, auto) {});
}

BARACUDA_TARGET(segment_sum, sum_handler, reduction(operands<3>().RemainingArgs()).Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_sum_backward, sum_backward_handler, gradient<3>());

}  // namespace
}  // namespace baracuda
