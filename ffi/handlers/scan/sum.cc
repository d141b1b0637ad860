// FFI targets of cumulative sums.
#include "scan.h"

namespace baracuda {
namespace {

ffi::Error sum_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                       ffi::Result<ffi::AnyBuffer> y, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("cumsum", "operand", x).same("the result", *y);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_number(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = Modular<typename decltype(type)::type>;
    CumSum<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y);
    return scanning.run(device, *workspace, functor, reverse, exclusive);
  });
}

BARACUDA_TARGET(cumsum, sum_handler, scanned<1>().Attr<bool>("reverse").Attr<bool>("exclusive"));

}  // namespace
}  // namespace baracuda
