// FFI targets of products of segments.
#include "segment.h"

namespace baracuda {
namespace {

// The second and third results, the product of the nonzero factors and the number of zeros (at most 2), serve the
// gradient.
ffi::Error prod_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                        ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more,
                        int64_t empty_bits) {
  constexpr const char* op = "segment_prod";
  Reduction reduction(op, data, perm, offsets, *y);
  Checks& checks = reduction.checks;
  checks.require(more.size() == 0 || more.size() == 2, "expected one or three results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  void *nonzero = nullptr, *zeros = nullptr;
  if (more.size() == 2) {
    auto first = more.get<ffi::AnyBuffer>(0), second = more.get<ffi::AnyBuffer>(1);
    if (first.has_error()) return first.error();
    if (second.has_error()) return second.error();
    checks.same_shape("product", **first, "the result", *y)
        .same_shape("zeros", **second, "the result", *y)
        .dtype("product", **first, wide_of(data))
        .dtype("zeros", **second, ffi::DataType::U8);
    if (checks.failed()) return checks.error();
    nonzero = (*first)->untyped_data(), zeros = (*second)->untyped_data();
  }
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = Modular<typename decltype(type)::type>;
    if (!is_float<T> && nonzero) return invalid(op, "only floats have a gradient");
    SegmentProd<T> reducer{static_cast<T*>(y->untyped_data()), static_cast<Accumulator<T>*>(nonzero),
                           static_cast<uint8_t*>(zeros), from_bits<T>(empty_bits)};
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

ffi::Error prod_backward_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                 ffi::AnyBuffer nonzero, ffi::AnyBuffer zeros, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_prod_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.checks.same_shape("data", data, "the result", *dx)
      .same_dtype("data", data, "dy", dy)
      .same_shape("product", nonzero, "dy", dy)
      .same_shape("zeros", zeros, "dy", dy)
      .dtype("product", nonzero, wide_of(dy))
      .dtype("zeros", zeros, ffi::DataType::U8);
  return gradient.run<SegmentProdBackward>(op, device, dy, *dx, [&](auto& broadcaster, auto type) {
    using T = typename decltype(type)::type;
    broadcaster.x = static_cast<const T*>(data.untyped_data());
    broadcaster.product = static_cast<const Accumulator<T>*>(nonzero.untyped_data());
    broadcaster.zeros = static_cast<const uint8_t*>(zeros.untyped_data());
  });
}

BARACUDA_TARGET(segment_prod, prod_handler, reduction(operands<3>()).RemainingRets().Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_prod_backward, prod_backward_handler, gradient<6>());

}  // namespace
}  // namespace baracuda
