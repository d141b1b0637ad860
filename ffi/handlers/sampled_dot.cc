// The FFI target of sampled dot products: x [batches..., n, d], y [batches..., m, d] and, for each of so many entries,
// a row of each [some of the batches..., e], which give [batches..., e, heads].
#include "row_numbers.h"
#include "target.h"
#include BARACUDA_DRIVER(sampled_dot)

namespace baracuda {
namespace {

ffi::Error dot_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer x_row, ffi::AnyBuffer y_row,
                       ffi::Result<ffi::AnyBuffer> result) {
  constexpr const char* op = "sampled_dot";
  Checks checks(op);
  auto a = x.dimensions(), b = y.dimensions(), rows = x_row.dimensions(), dots = result->dimensions();
  checks.same_dtype("y", y, "x", x)
      .same_shape("y_row", y_row, "x_row", x_row)
      .require(is_row_number(x_row), "x_row must be int32 or uint32, got type ", int(x_row.element_type()))
      .require(is_row_number(y_row), "y_row must be int32 or uint32, got type ", int(y_row.element_type()))
      .dtype("the result", *result, wide_of(x))
      .require(a.size() >= 2, "x must have rank 2 or more, got ", describe(a))
      .require(a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin()) && a.back() == b.back(),
               "y must have the batches and columns of x, ", describe(a), ", got ", describe(b))
      .require(1 <= rows.size() && rows.size() < a.size() && std::equal(rows.begin(), rows.end() - 1, a.begin()),
               "x_row must begin with batches of x, ", describe(a), ", got ", describe(rows));
  if (checks.failed()) return checks.error();
  checks.require(dots.size() == a.size() && std::equal(a.begin(), a.end() - 2, dots.begin()) &&
                     dots[dots.size() - 2] == rows.back() && dots.back() >= 1 && a.back() % dots.back() == 0,
                 "the result must have the batches of x, ", describe(a), ", ", rows.back(),
                 " entries and heads that divide the columns, got ", describe(dots));
  if (checks.failed()) return checks.error();
  int64_t batches = product(a, 0, a.size() - 2), shared = product(rows, 0, rows.size() - 1);
  SampledDotShape shape{batches,
                        a[a.size() - 2],
                        b[b.size() - 2],
                        rows.back(),
                        dots.back(),
                        a.back() / dots.back(),
                        shared > 0 ? batches / shared : 1};
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, sampled_dot(device.executor(),
                                    SampledDot<T>{shape, in<T>(x), in<T>(y), in<uint32_t>(x_row), in<uint32_t>(y_row),
                                                  rows_below(x_row, shape.x_rows), rows_below(y_row, shape.y_rows),
                                                  out<Accumulator<T>>(result)}));
  });
}

BARACUDA_TARGET(sampled_dot, dot_handler, operands<4>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
