// The FFI target of selective scans.
#include "selective_scan.h"

namespace baracuda {
namespace {

ffi::Error scan_handler(Device device, ffi::AnyBuffer u, ffi::AnyBuffer dt, ffi::AnyBuffer a, ffi::AnyBuffer b,
                        ffi::AnyBuffer c, ffi::AnyBuffer skip, ffi::AnyBuffer z, ffi::AnyBuffer bias,
                        ffi::AnyBuffer state, ffi::AnyBuffer starts, ffi::Result<ffi::AnyBuffer> y,
                        ffi::RemainingRets more, bool softplus) {
  constexpr const char* op = "selective_scan";
  ScanArguments arguments{u, dt, a, b, c, skip, z, bias, state, starts, softplus};
  if (auto problem = arguments.problem(op)) return *problem;
  Checks checks(op);
  checks.same_shape("y", *y, "u", u).same_dtype("y", *y, "u", u);
  MoreStates states = require_more(checks, arguments, more);
  if (checks.failed()) return checks.error();
  return for_float(op, "u", u.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(op, selective_scan(device.executor(), arguments.scan<T>(), out<T>(y),
                                       static_cast<Wide*>(states.last), static_cast<Wide*>(states.saved)));
  });
}

BARACUDA_TARGET(selective_scan, scan_handler,
                operands<10>().Ret<ffi::AnyBuffer>().RemainingRets().Attr<bool>("softplus"));

}  // namespace
}  // namespace baracuda
