// The FFI targets of normalizations. What is saved of a row, its mean and r, or r alone, has the shape [batches...].
#include "handlers/normalization/normalization.h"
#include BARACUDA_DRIVER(rows)

namespace baracuda {
namespace {

// `saved` is nothing, or the mean, where it is found, and r.
template <bool finds_mean>
ffi::Error normalize(const char* op, Device& device, const Array& x, const Array& weight, const Array* bias, Output& y,
                     ffi::RemainingRets& saved, double eps, double offset, bool rounds) {
  NormalizedRows shape(op, x);
  shape.checks.require(saved.size() == 0 || saved.size() == 1 + finds_mean, "there must be 1 result or all, got ",
                       1 + int64_t(saved.size()));
  if (shape.checks.failed()) return shape.checks.error();
  shape.like_x("y", *y, x), shape.by_column("weight", weight);
  if (bias) {
    shape.by_column("bias", *bias);
    shape.checks.same_shape("bias", *bias, "weight", weight);
  }
  void* of_rows[2] = {};
  for (size_t i = 0; i < saved.size(); ++i) {
    auto array = saved.get<ffi::AnyBuffer>(i);
    if (!array) return array.error();
    shape.by_row(finds_mean && i == 0 ? "mean" : "r", **array);
    of_rows[finds_mean ? i : 1] = (*array)->untyped_data();
  }
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    Normalize<T, finds_mean> functor{in<T>(x),
                                     out<T>(y),
                                     column_numbers<T>(weight),
                                     bias ? column_numbers<T>(*bias) : ColumnNumbers<T>{},
                                     static_cast<Wide*>(of_rows[0]),
                                     static_cast<Wide*>(of_rows[1]),
                                     Wide(eps),
                                     Wide(offset),
                                     rounds,
                                     shape.with(weight)};
    return to_error(op, run_rows(device.executor(), functor, shape.rows, shape.columns));
  });
}

ffi::Error layer_norm_call(Device device, Array x, Array weight, Array bias, Output y, ffi::RemainingRets saved,
                           double eps) {
  return normalize<true>("layer_norm", device, x, weight, &bias, y, saved, eps, 0, false);
}
ffi::Error rms_norm_call(Device device, Array x, Array weight, Output y, ffi::RemainingRets saved, double eps,
                         double offset, bool rounds) {
  return normalize<false>("rms_norm", device, x, weight, nullptr, y, saved, eps, offset, rounds);
}

BARACUDA_TARGET(layer_norm, layer_norm_call, operands<3>().Ret<Array>().RemainingRets().Attr<double>("eps"));
BARACUDA_TARGET(
    rms_norm, rms_norm_call,
    operands<2>().Ret<Array>().RemainingRets().Attr<double>("eps").Attr<double>("offset").Attr<bool>("rounds"));

}  // namespace
}  // namespace baracuda
