// FFI targets of means of segments.
#include "segment.h"

namespace baracuda {
namespace {

// The fourth operand, the number of rows that each sum is divided by, is there where it is not that of the rows here.
ffi::Error mean_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                        ffi::RemainingArgs more, ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                        int64_t empty_bits) {
  constexpr const char* op = "segment_mean";
  Reduction reduction(op, data, perm, offsets, *y);
  const int32_t* counts = nullptr;
  reduction.checks.require(more.size() <= 1, "expected three or four operands, got ", more.size() + 3);
  if (auto given = optional_operand(more)) {
    reduction.check_counts(*given, offsets);
    counts = static_cast<const int32_t*>(given->untyped_data());
  }
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SegmentSum<T> sum{static_cast<T*>(y->untyped_data()), from_bits<T>(empty_bits)};
    if (counts) return reduction.run(op, device, SegmentMean<T, true>{sum, counts}, data, *workspace);
    return reduction.run(op, device, SegmentMean<T, false>{sum, nullptr}, data, *workspace);
  });
}

ffi::Error mean_backward_handler(Device device, ffi::AnyBuffer perm, ffi::AnyBuffer offsets, ffi::AnyBuffer counts,
                                 ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_mean_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.check_counts(counts, offsets);
  return gradient.run<SegmentMeanBackward>(op, device, dy, *dx, [&](auto& broadcaster, auto) {
    broadcaster.counts = static_cast<const int32_t*>(counts.untyped_data());
  });
}

BARACUDA_TARGET(segment_mean, mean_handler, reduction(operands<3>().RemainingArgs()).Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_mean_backward, mean_backward_handler, gradient<4>());

}  // namespace
}  // namespace baracuda
