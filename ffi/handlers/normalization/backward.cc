// The FFI targets of normalizations' gradients: x of shape [batches..., rows, columns], a weight and its gradient
// [batches..., columns].
#include "handlers/normalization/sums.h"

#include BARACUDA_DRIVER(rows_with_sums)

namespace baracuda {
namespace {

// `mean`, `more` and `dbias` may be null.
template <bool centered>
ffi::Error gradient(const char* op, Device& device, const Array& x, const Array& weight, const Array* mean,
                    const Array& r, const Array& dy, const Array* more, Output& workspace, Output& dx, Output& dweight,
                    Output* dbias, double offset, bool rounds) {
  NormalizedRows shape(op, x);
  if (shape.checks.failed()) return shape.checks.error();
  shape.like_x("dy", dy, x), shape.like_x("dx", *dx, x), shape.by_row("r", r);
  if (mean) shape.by_row("mean", *mean);
  if (more) shape.like_x("dtotal", *more, x);
  shape.by_column("weight", weight);
  shape.like("dweight", *dweight, "weight", weight);
  if (dbias) shape.like("dbias", **dbias, "weight", weight);
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    Columns<T> weights(weight);
    NormalizeGradient<T, centered> functor{{},
                                           in<T>(x),
                                           in<T>(dy),
                                           more ? in<T>(*more) : nullptr,
                                           out<T>(dx),
                                           weights.numbers,
                                           mean ? in<Wide>(*mean) : nullptr,
                                           in<Wide>(r),
                                           Wide(offset),
                                           rounds,
                                           shape.with(weight)};
    int64_t rows = functor.shape.rows_of_weight, batches = shape.rows / std::max<int64_t>(rows, 1);
    return to_error(op, run_rows_with_sums(device.executor(*workspace), functor, batches, rows, shape.columns,
                                           column_sums<T>(dweight), dbias ? column_sums<T>(*dbias) : ColumnSums<T>{}));
  });
}

ffi::Error layer_norm_backward_call(Device device, Array x, Array weight, Array mean, Array r, Array dy,
                                    Output workspace, Output dx, Output dweight, Output dbias) {
  return gradient<true>("layer_norm_backward", device, x, weight, &mean, r, dy, nullptr, workspace, dx, dweight, &dbias,
                        0, false);
}
ffi::Error rms_norm_backward_call(Device device, Array x, Array weight, Array r, Array dy, Output workspace, Output dx,
                                  Output dweight, double offset, bool rounds) {
  return gradient<false>("rms_norm_backward", device, x, weight, nullptr, r, dy, nullptr, workspace, dx, dweight,
                         nullptr, offset, rounds);
}
ffi::Error add_rms_norm_backward_call(Device device, Array total, Array weight, Array r, Array dy, Array dtotal,
                                      Output workspace, Output dx, Output dweight, double offset, bool rounds) {
  return gradient<false>("add_rms_norm_backward", device, total, weight, nullptr, r, dy, &dtotal, workspace, dx,
                         dweight, nullptr, offset, rounds);
}

BARACUDA_TARGET(layer_norm_backward, layer_norm_backward_call,
                operands<5>().Ret<Array>().Ret<Array>().Ret<Array>().Ret<Array>());
BARACUDA_TARGET(rms_norm_backward, rms_norm_backward_call,
                operands<4>().Ret<Array>().Ret<Array>().Ret<Array>().Attr<double>("offset").Attr<bool>("rounds"));
BARACUDA_TARGET(add_rms_norm_backward, add_rms_norm_backward_call,
                operands<5>().Ret<Array>().Ret<Array>().Ret<Array>().Attr<double>("offset").Attr<bool>("rounds"));

}  // namespace
}  // namespace baracuda
