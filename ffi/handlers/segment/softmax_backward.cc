// The FFI target of the gradient of the softmax of segments, in the same two parts.
#include "kernels/segment_softmax.h"
#include "segment.h"

namespace baracuda {
namespace {

// Results: dx, shaped as data; and the mean of each segment's dy by its weights.
ffi::Error softmax_backward_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                    ffi::AnyBuffer lse, ffi::AnyBuffer rest, ffi::AnyBuffer dy, ffi::RemainingArgs ids,
                                    ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx,
                                    ffi::Result<ffi::AnyBuffer> mean) {
  constexpr const char* op = "segment_softmax_backward";
  Reduction reduction(op, data, perm, offsets, *mean, {}, true);
  reduction.checks.dtype("the mean", *mean, wide_of(data))
      .same_shape("the result", *dx, "data", data)
      .same_dtype("the result", *dx, "data", data)
      .same_shape("dy", dy, "data", data)
      .same_dtype("dy", dy, "data", data)
      .same_shape("lse", lse, "the mean", *mean)
      .same_dtype("lse", lse, "data", data)
      .same_shape("rest", rest, "the mean", *mean)
      .dtype("rest", rest, wide_of(data));
  SegmentIndex rows = reduction.with_ids(optional_operand(ids), offsets);
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto* means = out<Accumulator<T>>(mean);
    SegmentSoftmaxBackwardOnChip<T> backward{{in<T>(dy), means},
                                             {{in<T>(data), in<T>(lse), in<Accumulator<T>>(rest)}, in<T>(dy), means}};
    return to_error(op, reduce_and_broadcast_segments(device.executor(*workspace), backward, reduction.index, rows,
                                                      in<T>(data), out<T>(dx)));
  });
}

BARACUDA_TARGET(segment_softmax_backward, softmax_backward_handler,
                reduction(operands<6>().RemainingArgs()).Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
