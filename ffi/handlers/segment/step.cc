// FFI targets of steps of optimizers on the rows of a table, of which each is a segment.
#include "kernels/segment_step.h"
#include "segment.h"

namespace baracuda {
namespace {

// `rates` are [batches...], in what sums are computed in.
void check_step(Reduction& reduction, const ffi::AnyBuffer& dy, const ffi::AnyBuffer& table,
                const ffi::AnyBuffer& rates, const ffi::AnyBuffer& y) {
  auto x = dy.dimensions(), r = rates.dimensions();
  reduction.checks.same_shape("the table", table, "the result", y)
      .same_dtype("the table", table, "dy", dy)
      .dtype("rates", rates, wide_of(dy))
      .require(r.size() + 2 == x.size() && std::equal(r.begin(), r.end(), x.begin()),
               "rates must have the batches of dy, ", describe(x), ", got ", describe(r));
}

template <class T>
SegmentStep<T> step_of(const Reduction& reduction, const ffi::AnyBuffer& table, const ffi::AnyBuffer& rates,
                       ffi::Result<ffi::AnyBuffer>& y) {
  const SegmentShape& shape = reduction.index.shape;
  int64_t batch = shape.segments * shape.columns;
  return {in<T>(table), out<T>(y), in<Accumulator<T>>(rates), batch, 1 / double(batch)};
}

ffi::Error sgd_handler(Device device, ffi::AnyBuffer dy, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                       ffi::AnyBuffer table, ffi::AnyBuffer rates, ffi::Result<ffi::AnyBuffer> workspace,
                       ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "segment_sgd_step";
  Reduction reduction(op, dy, perm, offsets, *y);
  check_step(reduction, dy, table, rates, *y);
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reduction.run(op, device, SegmentSgdStep<T>{step_of<T>(reduction, table, rates, y)}, dy, *workspace);
  });
}

ffi::Error adagrad_handler(Device device, ffi::AnyBuffer dy, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                           ffi::AnyBuffer table, ffi::AnyBuffer squares, ffi::AnyBuffer rates,
                           ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                           ffi::Result<ffi::AnyBuffer> new_squares, double eps) {
  constexpr const char* op = "segment_adagrad_step";
  Reduction reduction(op, dy, perm, offsets, *y);
  check_step(reduction, dy, table, rates, *y);
  bool is_wide = squares.element_type() == rates.element_type();
  reduction.checks.same_shape("squares", squares, "the table", table)
      .require(is_wide || squares.element_type() == table.element_type(),
               "squares must have the dtype of the table or of rates, got type ", int(squares.element_type()))
      .same_shape("the second result", *new_squares, "the table", table)
      .same_dtype("the second result", *new_squares, "squares", squares);
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto run = [&](auto of_squares) {
      using A = typename decltype(of_squares)::type;
      SegmentAdagradStep<T, A> step{step_of<T>(reduction, table, rates, y), in<A>(squares), out<A>(new_squares),
                                    Accumulator<T>(eps)};
      return reduction.run(op, device, step, dy, *workspace);
    };
    return is_wide ? run(Type<Accumulator<T>>{}) : run(Type<T>{});
  });
}

BARACUDA_TARGET(segment_sgd_step, sgd_handler, reduction(operands<5>()));
BARACUDA_TARGET(segment_adagrad_step, adagrad_handler,
                reduction(operands<6>()).Ret<ffi::AnyBuffer>().Attr<double>("eps"));

}  // namespace
}  // namespace baracuda
