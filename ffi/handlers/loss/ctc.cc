// The FFI targets of connectionist temporal classification: x [batches..., frames, classes], targets [batches...,
// labels], lengths of both [batches...].
#include "handlers/saved.h"
#include "handlers/target.h"
#include BARACUDA_DRIVER(lattice)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

// The operands that both targets have, and their shapes.
struct CtcOperands {
  const char* op;
  Checks checks;
  const Array &x, &targets, &input_lengths, &target_lengths;
  CtcShape shape;

  CtcOperands(const char* op, const Array& x, const Array& targets, const Array& input_lengths,
              const Array& target_lengths, int64_t blank, bool is_log)
      : op(op), checks(op), x(x), targets(targets), input_lengths(input_lengths), target_lengths(target_lengths) {
    auto dims = x.dimensions(), labels = targets.dimensions();
    checks.require(dims.size() >= 2, "x must have rank 2 or more, got ", describe(dims))
        .dtype("targets", targets, ffi::DataType::S32)
        .dtype("input_lengths", input_lengths, ffi::DataType::S32)
        .dtype("target_lengths", target_lengths, ffi::DataType::S32);
    if (checks.failed()) return;
    checks
        .require(labels.size() == dims.size() - 1 && std::equal(dims.begin(), dims.end() - 2, labels.begin()),
                 "targets must have the batches of x, ", describe(dims), ", and labels, got ", describe(labels))
        .require(blank >= 0 && blank < dims.back(), "blank must be one of ", dims.back(), " classes, got ", blank);
    if (checks.failed()) return;
    per_sample("input_lengths", input_lengths);
    per_sample("target_lengths", target_lengths);
    constexpr int64_t most = 1 << 30;
    checks.require(labels.back() < most && dims[dims.size() - 2] < most && dims.back() < most,
                   "there may be at most 2^30 frames, labels and classes, got ", describe(dims), " and ",
                   describe(labels));
    if (checks.failed()) return;
    shape = {
        product(dims, 0, dims.size() - 2), dims[dims.size() - 2], dims.back(), int(labels.back()), int(blank), is_log};
  }

  void per_sample(const char* name, const Array& array) {
    auto dims = x.dimensions(), got = array.dimensions();
    checks.require(got.size() + 2 == dims.size() && std::equal(got.begin(), got.end(), dims.begin()), name,
                   " must have the batches of x, ", describe(dims), ", got ", describe(got));
  }
  // The sums of half of the frames in each direction.
  void sums(const char* name, const Array& array) {
    auto dims = x.dimensions(), got = array.dimensions();
    size_t rank = dims.size() + 1;
    checks.dtype(name, array, wide(x.element_type()));
    checks.require(got.size() == rank && std::equal(dims.begin(), dims.end() - 1, got.begin()) && got[rank - 2] == 4 &&
                       got[rank - 1] == shape.pairs(),
                   name, " must have the batches and frames of x, ", describe(dims), ", and [4, ", shape.pairs(),
                   "], got ", describe(got));
  }
  template <class T>
  Ctc<T> of() const {
    return {{shape, in<int32_t>(targets), in<int32_t>(input_lengths), in<int32_t>(target_lengths)}, in<T>(x)};
  }
};

ffi::Error forward_handler(Device device, Array x, Array targets, Array input_lengths, Array target_lengths,
                           Output workspace, Output loss, ffi::RemainingRets more, int64_t blank, bool is_log) {
  CtcOperands operands("ctc_loss", x, targets, input_lengths, target_lengths, blank, is_log);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  operands.per_sample("the result", *loss);
  checks.dtype("the result", *loss, wide(x.element_type()))
      .require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  void* half = nullptr;
  if (!checks.failed() && more.size() == 1) {
    auto second = more.get<Array>(0);
    if (second.has_error()) return second.error();
    operands.sums("the second result", **second);
    half = (*second)->untyped_data();
  }
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op,
                    lattice(device.executor(*workspace), operands.of<T>(), out<Wide>(loss), static_cast<Wide*>(half)));
  });
}

ffi::Error backward_handler(Device device, Array x, Array targets, Array input_lengths, Array target_lengths,
                            Array half, Array dy, Output workspace, Output dx, int64_t blank, bool is_log) {
  CtcOperands operands("ctc_loss_backward", x, targets, input_lengths, target_lengths, blank, is_log);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  operands.sums("sums", half);
  operands.per_sample("dy", dy);
  checks.dtype("dy", dy, wide(x.element_type()))
      .same_dtype("the result", *dx, "x", x)
      .same_shape("the result", *dx, "x", x);
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op, lattice_backward(device.executor(*workspace), operands.of<T>(), in<Wide>(half),
                                                  in<Wide>(dy), out<T>(dx)));
  });
}

BARACUDA_TARGET(ctc_loss, forward_handler,
                operands<4>().Ret<Array>().Ret<Array>().RemainingRets().Attr<int64_t>("blank").Attr<bool>("is_log"));
BARACUDA_TARGET(ctc_loss_backward, backward_handler,
                operands<6>().Ret<Array>().Ret<Array>().Attr<int64_t>("blank").Attr<bool>("is_log"));

}  // namespace
}  // namespace baracuda
