// FFI targets of cumulative products.
#include "scan.h"

namespace baracuda {
namespace {

ffi::Error prod_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                        ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("cumprod", "operand", x).same("the result", *y);
  void* ranged_y = ranged_of(scanning, more);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_number(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = Modular<typename decltype(type)::type>;
    CumProd<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y), functor.ranged = static_cast<Ranged<T>*>(ranged_y);
    return scanning.run(device, *workspace, functor, reverse, exclusive);
  });
}

ffi::Error prod_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx, bool reverse) {
  Scanning scanning =
      Scanning("cumprod_backward", "operand", x).same_shape("y", y).same("dy", dy).same("the result", *dx);
  scanning.checks.dtype("y", y, ranged(x.element_type()));
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    CumProdBackward<T> functor{};
    functor.x = in<T>(x), functor.y = in<Ranged<T>>(y), functor.dy = in<T>(dy), functor.dx = out<T>(dx);
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

BARACUDA_TARGET(cumprod, prod_handler, scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(cumprod_backward, prod_backward_handler, scanned<3>().Attr<bool>("reverse"));

}  // namespace
}  // namespace baracuda
