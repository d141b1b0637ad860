// FFI targets of gradients of maxima and minima of segments.
#include "segment.h"

namespace baracuda {
namespace {

ffi::Error extremum_backward_handler(Device device, ffi::AnyBuffer perm, ffi::AnyBuffer offsets, ffi::AnyBuffer arg,
                                     ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_extremum_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.checks.same_shape("arg", arg, "dy", dy)
      .require(arg.element_type() == ffi::DataType::S32 || arg.element_type() == ffi::DataType::U32,
               "arg must be int32 or uint32, got type ", int(arg.element_type()));
  return gradient.run<SegmentExtremumBackward>(op, device, dy, *dx, [&](auto& broadcaster, auto) {
    broadcaster.arg = static_cast<const uint32_t*>(arg.untyped_data());
  });
}

ffi::Error ties_backward_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                 ffi::AnyBuffer y, ffi::AnyBuffer ties, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_ties_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.checks.same_shape("data", data, "the result", *dx)
      .same_dtype("data", data, "dy", dy)
      .same_shape("y", y, "dy", dy)
      .same_dtype("y", y, "dy", dy)
      .same_shape("ties", ties, "dy", dy)
      .dtype("ties", ties, ffi::DataType::F32);
  return gradient.run<SegmentTiesBackward>(op, device, dy, *dx, [&](auto& broadcaster, auto type) {
    using T = typename decltype(type)::type;
    broadcaster.x = static_cast<const T*>(data.untyped_data());
    broadcaster.y = static_cast<const T*>(y.untyped_data());
    broadcaster.ties = static_cast<const float*>(ties.untyped_data());
  });
}

BARACUDA_TARGET(segment_extremum_backward, extremum_backward_handler, gradient<4>());
BARACUDA_TARGET(segment_ties_backward, ties_backward_handler, gradient<6>());

}  // namespace
}  // namespace baracuda
