// The FFI targets of soft dynamic time warping: x [batches..., rows, columns], the lengths of both series
// [batches...].
#include "handlers/saved.h"
#include "handlers/target.h"
#include BARACUDA_DRIVER(lattice_soft_dtw)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

// The operands that both targets have, and their shapes.
struct SoftDtwOperands {
  const char* op;
  Checks checks;
  const Array &x, &row_lengths, &column_lengths;
  SoftDtwShape shape{};

  SoftDtwOperands(const char* op, const Array& x, const Array& row_lengths, const Array& column_lengths, double gamma)
      : op(op), checks(op), x(x), row_lengths(row_lengths), column_lengths(column_lengths) {
    auto dims = x.dimensions();
    checks.require(dims.size() >= 2, "x must have rank 2 or more, got ", describe(dims))
        .dtype("row_lengths", row_lengths, ffi::DataType::S32)
        .dtype("column_lengths", column_lengths, ffi::DataType::S32)
        .require(gamma > 0, "gamma must be above 0, got ", gamma);
    if (checks.failed()) return;
    per_sample("row_lengths", row_lengths);
    per_sample("column_lengths", column_lengths);
    constexpr int64_t most = 1 << 30;
    checks.require(dims[dims.size() - 2] < most && dims.back() < most,
                   "there may be at most 2^30 rows and columns, got ", describe(dims));
    if (checks.failed()) return;
    shape = {product(dims, 0, dims.size() - 2), dims[dims.size() - 2], dims.back(), gamma};
  }

  bool has_batches(Dimensions got, size_t rank) const {
    auto dims = x.dimensions();
    return got.size() == dims.size() - 2 + rank && std::equal(dims.begin(), dims.end() - 2, got.begin());
  }
  void per_sample(const char* name, const Array& array) {
    checks.require(has_batches(array.dimensions(), 0), name, " must have the batches of x, ", describe(x.dimensions()),
                   ", got ", describe(array.dimensions()));
  }
  // The sums of half of the antidiagonals in each direction, and the sum over all paths.
  void saved(const Array& sums, const Array& total) {
    SoftDtwLengths lengths{shape, nullptr, nullptr};
    const int64_t sizes[] = {lengths.rows(), 2, shape.columns};
    auto of_sums = sums.dimensions(), of_total = total.dimensions();
    checks.dtype("sums", sums, wide(x.element_type()))
        .dtype("total", total, wide(x.element_type()))
        .require(has_batches(of_sums, 3) && std::equal(sizes, sizes + 3, of_sums.end() - 3),
                 "sums must have the batches of x, ", describe(x.dimensions()), ", and ",
                 describe(Dimensions(sizes, 3)), ", got ", describe(of_sums))
        .require(has_batches(of_total, 1) && of_total.back() == 2, "total must have the batches of x, ",
                 describe(x.dimensions()), ", and [2], got ", describe(of_total));
  }
  template <class T>
  SoftDtw<T> of() const {
    return {{shape, in<int32_t>(row_lengths), in<int32_t>(column_lengths)}, in<T>(x)};
  }
};

ffi::Error forward_handler(Device device, Array x, Array row_lengths, Array column_lengths, Output workspace, Output y,
                           ffi::RemainingRets more, double gamma) {
  SoftDtwOperands operands("soft_dtw", x, row_lengths, column_lengths, gamma);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  operands.per_sample("the result", *y);
  checks.dtype("the result", *y, wide(x.element_type()))
      .require(more.size() == 0 || more.size() == 2, "expected one or three results, got ", more.size() + 1);
  void *half = nullptr, *totals = nullptr;
  if (!checks.failed() && more.size() == 2) {
    auto sums = more.get<Array>(0), total = more.get<Array>(1);
    for (auto* each : {&sums, &total})
      if (each->has_error()) return each->error();
    operands.saved(**sums, **total);
    half = (*sums)->untyped_data(), totals = (*total)->untyped_data();
  }
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op, lattice(device.executor(*workspace), operands.of<T>(), out<Wide>(y),
                                         static_cast<Wide*>(half), static_cast<Wide*>(totals)));
  });
}

ffi::Error backward_handler(Device device, Array x, Array row_lengths, Array column_lengths, Array sums, Array total,
                            Array dy, Output workspace, Output dx, double gamma) {
  SoftDtwOperands operands("soft_dtw_backward", x, row_lengths, column_lengths, gamma);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  operands.saved(sums, total);
  operands.per_sample("dy", dy);
  checks.dtype("dy", dy, wide(x.element_type()))
      .same_dtype("the result", *dx, "x", x)
      .same_shape("the result", *dx, "x", x);
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op, lattice_backward(device.executor(*workspace), operands.of<T>(), in<Wide>(sums),
                                                  in<Wide>(total), in<Wide>(dy), out<T>(dx)));
  });
}

BARACUDA_TARGET(soft_dtw, forward_handler,
                operands<3>().Ret<Array>().Ret<Array>().RemainingRets().Attr<double>("gamma"));
BARACUDA_TARGET(soft_dtw_backward, backward_handler, operands<6>().Ret<Array>().Ret<Array>().Attr<double>("gamma"));

}  // namespace
}  // namespace baracuda
