// The FFI targets of the transducer: x [batches..., frames, labels + 1, classes].
#include "handlers/loss/labels.h"
#include BARACUDA_DRIVER(lattice_transducer)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

template <class T>
Transducer<T> transducer_of(const LabelOperands& operands) {
  return {{operands.labels()}, in<T>(operands.x)};
}
// What the gradient goes on from: logarithms of each node's probabilities, the sums of half of the rows in each
// direction, and the sum over all paths.
void check_saved(LabelOperands& operands, const Array& logs, const Array& sums, const Array& total) {
  int64_t frames = operands.shape.frames, states = operands.shape.labels + 1;
  operands.saved("logs", logs, {frames, 4, states});
  operands.saved("sums", sums, {frames + states, 2, states});
  operands.saved("total", total, {2});
}

ffi::Error forward_handler(Device device, Array x, Array targets, Array input_lengths, Array target_lengths,
                           Output workspace, Output loss, ffi::RemainingRets more, int64_t blank, bool is_log) {
  LabelOperands operands("rnnt_loss", 3, x, targets, input_lengths, target_lengths, blank, is_log);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  operands.per_sample("the result", *loss);
  checks.dtype("the result", *loss, wide(x.element_type()))
      .require(more.size() == 0 || more.size() == 3, "expected one or four results, got ", more.size() + 1);
  void* saved[3] = {};
  if (!checks.failed() && more.size() == 3) {
    auto logs = more.get<Array>(0), sums = more.get<Array>(1), total = more.get<Array>(2);
    for (auto* each : {&logs, &sums, &total})
      if (each->has_error()) return each->error();
    check_saved(operands, **logs, **sums, **total);
    saved[0] = (*logs)->untyped_data(), saved[1] = (*sums)->untyped_data(), saved[2] = (*total)->untyped_data();
  }
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op,
                    lattice(device.executor(*workspace), transducer_of<T>(operands), out<Wide>(loss),
                            static_cast<Wide*>(saved[0]), static_cast<Wide*>(saved[1]), static_cast<Wide*>(saved[2])));
  });
}

ffi::Error backward_handler(Device device, Array x, Array targets, Array input_lengths, Array target_lengths,
                            Array logs, Array sums, Array total, Array dy, Output workspace, Output dx, int64_t blank,
                            bool is_log) {
  LabelOperands operands("rnnt_loss_backward", 3, x, targets, input_lengths, target_lengths, blank, is_log);
  Checks& checks = operands.checks;
  if (checks.failed()) return checks.error();
  check_saved(operands, logs, sums, total);
  operands.per_sample("dy", dy);
  checks.dtype("dy", dy, wide(x.element_type()))
      .same_dtype("the result", *dx, "x", x)
      .same_shape("the result", *dx, "x", x);
  if (checks.failed()) return checks.error();
  return for_float(operands.op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(operands.op,
                    lattice_backward(device.executor(*workspace), transducer_of<T>(operands), in<Wide>(logs),
                                     in<Wide>(sums), in<Wide>(total), in<Wide>(dy), out<T>(dx)));
  });
}

BARACUDA_TARGET(rnnt_loss, forward_handler,
                operands<4>().Ret<Array>().Ret<Array>().RemainingRets().Attr<int64_t>("blank").Attr<bool>("is_log"));
BARACUDA_TARGET(rnnt_loss_backward, backward_handler,
                operands<8>().Ret<Array>().Ret<Array>().Attr<int64_t>("blank").Attr<bool>("is_log"));

}  // namespace
}  // namespace baracuda
