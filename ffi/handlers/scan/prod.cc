// FFI targets of cumulative products.
#include "scan.h"

namespace baracuda {
namespace {

ffi::Error prod_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                        ffi::Result<ffi::AnyBuffer> y, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("cumprod", "operand", x).same("the result", *y);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_number(scanning.op, "operand", x.element_type(),
                    cumulate<CumProd>(scanning, device, x, *workspace, y, reverse, exclusive));
}

ffi::Error prod_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx, bool reverse) {
  return cumulate_backward<CumProdBackward>("cumprod_backward", device, x, y, dy, *workspace, dx, reverse);
}

BARACUDA_TARGET(cumprod, prod_handler, scanned<1>().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(cumprod_backward, prod_backward_handler, scanned<3>().Attr<bool>("reverse"));

}  // namespace
}  // namespace baracuda
