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
  checks.same_shape("y", *y, "u", u)
      .same_dtype("y", *y, "u", u)
      .require(more.size() == 0 || more.size() == 2, "expected one or three results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  void *last = nullptr, *states = nullptr;
  if (more.size() == 2) {
    auto of_last = more.get<ffi::AnyBuffer>(0), of_states = more.get<ffi::AnyBuffer>(1);
    if (!of_last.has_value() || !of_states.has_value()) return invalid(op, "the results must be arrays");
    checks.same_shape("the last state", **of_last, "the state", state).same_dtype("the last state", **of_last, "A", a);
    arguments.check_saved(checks, **of_states);
    if (checks.failed()) return checks.error();
    last = (*of_last)->untyped_data(), states = (*of_states)->untyped_data();
  }
  return for_float(op, "u", u.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(op, selective_scan(device.executor(), arguments.scan<T>(), out<T>(y), static_cast<Wide*>(last),
                                       static_cast<Wide*>(states)));
  });
}

BARACUDA_TARGET(selective_scan, scan_handler,
                operands<10>().Ret<ffi::AnyBuffer>().RemainingRets().Attr<bool>("softplus"));

}  // namespace
}  // namespace baracuda
