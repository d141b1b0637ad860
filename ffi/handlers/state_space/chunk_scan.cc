// The FFI target of chunk scans.
#include "chunk_scan.h"

namespace baracuda {
namespace {

ffi::Error chunk_scan_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer dt, ffi::AnyBuffer a, ffi::AnyBuffer b,
                              ffi::AnyBuffer c, ffi::AnyBuffer skip, ffi::AnyBuffer z, ffi::AnyBuffer bias,
                              ffi::AnyBuffer state, ffi::AnyBuffer starts, ffi::Result<ffi::AnyBuffer> workspace,
                              ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool softplus) {
  constexpr const char* op = "ssd_chunk_scan";
  ChunkArguments arguments{x, dt, a, b, c, skip, z, bias, state, starts, softplus};
  if (auto problem = arguments.problem(op)) return *problem;
  Checks checks(op);
  checks.same_shape("y", *y, "x", x).same_dtype("y", *y, "x", x);
  MoreStates states = require_more(checks, arguments, more);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return to_error(op, chunk_scan(device.executor(*workspace), arguments.scan<T>(), out<T>(y),
                                   static_cast<Wide*>(states.last), static_cast<SavedState<T>*>(states.saved)));
  });
}

BARACUDA_TARGET(ssd_chunk_scan, chunk_scan_handler,
                operands<10>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().RemainingRets().Attr<bool>("softplus"));

}  // namespace
}  // namespace baracuda
