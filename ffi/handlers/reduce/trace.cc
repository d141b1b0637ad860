// FFI targets of traces: x [batches..., rows, middle, columns, inner], y [batches..., middle, inner].
#include "reduce.h"

#include "kernels/reduce/backward.h"
#include BARACUDA_DRIVER(gather)

namespace baracuda {
namespace {

struct Tracing {
  Checks checks;
  int64_t batches = 0, rows = 0, middle = 0, columns = 0, inner = 0;

  Tracing(const char* op, const char* x_name, const Array& x, const char* y_name, const Array& y) : checks(op) {
    auto full = x.dimensions(), kept = y.dimensions();
    size_t lead = full.size() - 4;
    checks.require(full.size() >= 4, x_name, " must have rank 4 or more, got ", describe(full));
    if (checks.failed()) return;
    bool fits = kept.size() == lead + 2 && std::equal(full.begin(), full.begin() + lead, kept.begin()) &&
                kept[lead] == full[lead + 1] && kept[lead + 1] == full[lead + 3];
    checks.require(fits, y_name, " must have the dimensions of ", x_name, ", ", describe(full),
                   ", but for the last and the third of the last four, got ", describe(kept));
    if (checks.failed()) return;
    batches = product(full, 0, lead), rows = full[lead], middle = full[lead + 1], columns = full[lead + 2];
    inner = full[lead + 3];
  }
  // The elements of a diagonal are slices.
  ReduceShape shape(int64_t offset) const {
    ReduceShape shape;
    int64_t row = middle * columns * inner, begin = offset < 0 ? -offset : 0, first = offset > 0 ? offset : 0;
    shape.count = std::max<int64_t>(0, std::min(rows - begin, columns - first));
    shape.first = begin * row + first * inner;
    shape.kept.push(batches, rows * row), shape.kept.push(middle, columns * inner);
    shape.reduced.push(shape.count, row + inner);
    shape.slices = batches * middle, shape.columns = inner;
    return shape;
  }
};

ffi::Error diagonal_handler(Device device, Array x, Output workspace, Output y, int64_t offset) {
  Tracing tracing("trace", "operand", x, "the result", *y);
  if (tracing.checks.failed()) return tracing.checks.error();
  return sum(Reducing("trace", x, *y, tracing.shape(offset)), device, *workspace, y, 1);
}

ffi::Error diagonal_backward_handler(Device device, Array dy, Output dx, int64_t offset) {
  constexpr const char* op = "trace_backward";
  Tracing tracing(op, "the result", *dx, "dy", dy);
  tracing.checks.same_dtype("the result", *dx, "dy", dy);
  if (tracing.checks.failed()) return tracing.checks.error();
  return for_inexact(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    BroadcastTrace<T> element{in<T>(dy), tracing.rows, tracing.middle, tracing.columns, tracing.inner, offset};
    return to_error(op, gather(device.executor(), element, out<T>(dx), tracing.batches, tracing.rows,
                               tracing.middle * tracing.columns * tracing.inner));
  });
}

BARACUDA_TARGET(trace, diagonal_handler, reduced().Attr<int64_t>("offset"));
BARACUDA_TARGET(trace_backward, diagonal_backward_handler, operands<1>().Ret<Array>().Attr<int64_t>("offset"));

}  // namespace
}  // namespace baracuda
