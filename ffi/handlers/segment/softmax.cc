// The FFI target of the softmax of segments: first what each segment has together, then its rows. A last operand may be
// ids [batches of ids..., rows], as int32: then rows are written in their own order, not in that of their segments.
#include "kernels/segment_softmax.h"
#include "segment.h"

namespace baracuda {
namespace {

// Results: y, shaped as data; the logarithm of each segment's sum, and what rounding took from it.
ffi::Error softmax_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                           ffi::RemainingArgs ids, ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                           ffi::Result<ffi::AnyBuffer> lse, ffi::Result<ffi::AnyBuffer> rest) {
  constexpr const char* op = "segment_softmax";
  Reduction reduction(op, data, perm, offsets, *lse);
  reduction.checks.same_shape("the result", *y, "data", data)
      .same_dtype("the result", *y, "data", data)
      .same_shape("rest", *rest, "lse", *lse)
      .dtype("rest", *rest, wide_of(data));
  SegmentIndex rows = reduction.with_ids(optional_operand(ids), offsets);
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* sums = out<T>(lse);
    auto* left = out<Accumulator<T>>(rest);
    SegmentSoftmaxOnChip<T> softmax{{sums, left, T(-std::numeric_limits<Accumulator<T>>::infinity())},
                                    {{in<T>(data), sums, left}}};
    return to_error(op, reduce_and_broadcast_segments(device.executor(*workspace), softmax, reduction.index, rows,
                                                      in<T>(data), out<T>(y)));
  });
}

BARACUDA_TARGET(segment_softmax, softmax_handler,
                reduction(operands<3>().RemainingArgs()).Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
