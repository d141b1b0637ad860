// The FFI target of selective scans' gradients.
#include "selective_scan.h"

namespace baracuda {

template <class T>
Status run_backward(Executor executor, const SelectiveScan<T>& scan, const SelectiveGradients<T>& gradients) {
  return selective_scan_backward(executor, scan, gradients);
}
template Status run_backward(Executor, const SelectiveScan<float>&, const SelectiveGradients<float>&);
template Status run_backward(Executor, const SelectiveScan<double>&, const SelectiveGradients<double>&);
extern template Status run_backward(Executor, const SelectiveScan<Half>&, const SelectiveGradients<Half>&);
extern template Status run_backward(Executor, const SelectiveScan<BFloat16>&, const SelectiveGradients<BFloat16>&);

namespace {

using Result = ffi::Result<ffi::AnyBuffer>;

ffi::Error scan_backward_handler(Device device, ffi::AnyBuffer u, ffi::AnyBuffer dt, ffi::AnyBuffer a, ffi::AnyBuffer b,
                                 ffi::AnyBuffer c, ffi::AnyBuffer skip, ffi::AnyBuffer z, ffi::AnyBuffer bias,
                                 ffi::AnyBuffer state, ffi::AnyBuffer starts, ffi::AnyBuffer states, ffi::AnyBuffer dy,
                                 ffi::AnyBuffer dfinal, Result workspace, Result du, Result ddt, Result da, Result db,
                                 Result dc, Result dskip, Result dz, Result dbias, Result dstate, bool softplus) {
  constexpr const char* op = "selective_scan_backward";
  ScanArguments arguments{u, dt, a, b, c, skip, z, bias, state, starts, softplus};
  if (auto problem = arguments.problem(op)) return *problem;
  Checks checks(op);
  arguments.check_saved(checks, states);
  require_gradients(checks, "u", u, arguments, dy, dfinal, {*du, *ddt, *da, *db, *dc, *dskip, *dz, *dbias, *dstate});
  if (checks.failed()) return checks.error();
  return for_float(op, "u", u.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    SelectiveGradients<T> gradients{in<Wide>(states), in<T>(dy),     in<Wide>(dfinal), out<T>(du),
                                    out<T>(ddt),      out<Wide>(da), out<T>(db),       out<T>(dc),
                                    out<Wide>(dskip), out<T>(dz),    out<Wide>(dbias), out<Wide>(dstate)};
    return to_error(op, run_backward(device.executor(*workspace), arguments.scan<T>(), gradients));
  });
}

BARACUDA_TARGET(selective_scan_backward, scan_backward_handler,
                operands<13>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Attr<bool>("softplus"));

}  // namespace
}  // namespace baracuda
