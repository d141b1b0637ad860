// FFI targets of cumulative logarithms of sums of exponentials.
#include "scan.h"

namespace baracuda {
namespace {

ffi::Error log_sum_exp_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                               ffi::Result<ffi::AnyBuffer> y, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("logcumsumexp", "operand", x).same("the result", *y);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "operand", x.element_type(),
                   cumulate<LogCumSumExp>(scanning, device, x, *workspace, y, reverse, exclusive));
}

ffi::Error log_sum_exp_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer dy,
                                        ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx,
                                        bool reverse) {
  return cumulate_backward<LogCumSumExpBackward>("logcumsumexp_backward", device, x, y, dy, *workspace, dx, reverse);
}

BARACUDA_TARGET(logcumsumexp, log_sum_exp_handler, scanned<1>().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(logcumsumexp_backward, log_sum_exp_backward_handler, scanned<3>().Attr<bool>("reverse"));

}  // namespace
}  // namespace baracuda
