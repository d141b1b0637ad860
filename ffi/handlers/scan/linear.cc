// FFI targets of linear recurrences.
#include "scan.h"

namespace baracuda {
namespace {

ffi::Error linear_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> workspace,
                          ffi::Result<ffi::AnyBuffer> h, ffi::RemainingRets more, bool reverse) {
  Scanning scanning = Scanning("linear_scan", "a", a).same("b", b).same("the result", *h);
  void* ranged_h = ranged_of(scanning, more);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_inexact(scanning.op, "a", a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LinearScan<T> functor{};
    functor.a = in<T>(a), functor.b = in<T>(b), functor.h = out<T>(h);
    functor.ranged = static_cast<Ranged<T>*>(ranged_h);
    return scanning.run(device, *workspace, functor, reverse);
  });
}

ffi::Error linear_backward_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer h, ffi::AnyBuffer dh,
                                   ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> da,
                                   ffi::Result<ffi::AnyBuffer> db, bool reverse) {
  Scanning scanning = Scanning("linear_scan_backward", "a", a).same_shape("h", h).same("dh", dh);
  scanning.checks.dtype("h", h, ranged(a.element_type()));
  scanning.same("the first result", *da).same("the second result", *db);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_inexact(scanning.op, "a", a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LinearScanBackward<T> functor{};
    functor.x = in<T>(a), functor.y = in<Ranged<T>>(h), functor.dy = in<T>(dh), functor.dx = out<T>(da),
    functor.db = out<T>(db);
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

BARACUDA_TARGET(linear_scan, linear_handler, scanned<2>().RemainingRets().Attr<bool>("reverse"));
BARACUDA_TARGET(linear_scan_backward, linear_backward_handler,
                scanned<3>().Ret<ffi::AnyBuffer>().Attr<bool>("reverse"));

}  // namespace
}  // namespace baracuda
