// The FFI targets of connectionist temporal classification: x [batches..., frames, classes].
#include "handlers/loss/labels.h"
#include BARACUDA_DRIVER(lattice_ctc)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

template <class T>
Ctc<T> ctc_of(const LabelOperands& operands) {
  return {{operands.labels()}, in<T>(operands.x)};
}
// The sums of half of the frames in each direction.
void check_sums(LabelOperands& operands, const char* name, const Array& sums) {
  operands.saved(name, sums, {operands.shape.frames, 4, operands.shape.labels + 1});
}

ffi::Error forward_handler(Device device, Array x, Array targets, Array input_lengths, Array target_lengths,
                           Output workspace, Output loss, ffi::RemainingRets more, int64_t blank, bool is_log) {
  LabelOperands operands("ctc_loss", 2, x, targets, input_lengths, target_lengths, blank, is_log);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  operands.per_sample("the result", *loss);
  checks.dtype("the result", *loss, wide(x.element_type()))
      .require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  void* half = nullptr;
  if (!checks.failed() && more.size() == 1) {
    auto second = more.get<Array>(0);
    if (second.has_error()) return second.error();
    check_sums(operands, "the second result", **second);
    half = (*second)->untyped_data();
  }
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op, lattice(device.executor(*workspace), ctc_of<T>(operands), out<Wide>(loss),
                                         static_cast<Wide*>(half)));
  });
}

ffi::Error backward_handler(Device device, Array x, Array targets, Array input_lengths, Array target_lengths,
                            Array half, Array dy, Output workspace, Output dx, int64_t blank, bool is_log) {
  LabelOperands operands("ctc_loss_backward", 2, x, targets, input_lengths, target_lengths, blank, is_log);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  check_sums(operands, "sums", half);
  operands.per_sample("dy", dy);
  checks.dtype("dy", dy, wide(x.element_type()))
      .same_dtype("the result", *dx, "x", x)
      .same_shape("the result", *dx, "x", x);
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op, lattice_backward(device.executor(*workspace), ctc_of<T>(operands), in<Wide>(half),
                                                  in<Wide>(dy), out<T>(dx)));
  });
}

BARACUDA_TARGET(ctc_loss, forward_handler,
                operands<4>().Ret<Array>().Ret<Array>().RemainingRets().Attr<int64_t>("blank").Attr<bool>("is_log"));
BARACUDA_TARGET(ctc_loss_backward, backward_handler,
                operands<6>().Ret<Array>().Ret<Array>().Attr<int64_t>("blank").Attr<bool>("is_log"));

}  // namespace
}  // namespace baracuda
