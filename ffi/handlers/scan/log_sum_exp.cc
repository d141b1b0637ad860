// FFI targets of cumulative logarithms of sums of exponentials.
#include "scan.h"

namespace baracuda {
namespace {

ffi::Error log_sum_exp_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                               ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("logcumsumexp", "operand", x).same("the result", *y);
  void* rest = second_of<void>(scanning, more, wide(x.element_type()));
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LogCumSumExp<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y), functor.rest = static_cast<Accumulator<T>*>(rest);
    return scanning.run(device, *workspace, functor, reverse, exclusive);
  });
}

ffi::Error log_sum_exp_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer rest,
                                        ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> workspace,
                                        ffi::Result<ffi::AnyBuffer> dx, bool reverse) {
  Scanning scanning = Scanning("logcumsumexp_backward", "operand", x).same("y", y).same_shape("rest", rest);
  scanning.checks.dtype("rest", rest, wide(x.element_type()));
  scanning.same("dy", dy).same("the result", *dx);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LogCumSumExpBackward<T> functor{};
    functor.x = in<T>(x), functor.y = in<T>(y), functor.rest = in<Accumulator<T>>(rest), functor.dy = in<T>(dy),
    functor.dx = out<T>(dx);
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

BARACUDA_TARGET(logcumsumexp, log_sum_exp_handler,
                scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(logcumsumexp_backward, log_sum_exp_backward_handler, scanned<4>().Attr<bool>("reverse"));

}  // namespace
}  // namespace baracuda
