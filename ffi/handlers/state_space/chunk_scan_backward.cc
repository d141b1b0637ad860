// The FFI target of chunk scans' gradients.
#include "chunk_scan.h"
#ifdef BARACUDA_CUDA
#include "patterns/chunk_scan_backward_cuda.h"
#endif

namespace baracuda {
namespace {

using Result = ffi::Result<ffi::AnyBuffer>;

ffi::Error chunk_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer dt, ffi::AnyBuffer a,
                                  ffi::AnyBuffer b, ffi::AnyBuffer c, ffi::AnyBuffer skip, ffi::AnyBuffer z,
                                  ffi::AnyBuffer bias, ffi::AnyBuffer state, ffi::AnyBuffer starts,
                                  ffi::AnyBuffer states, ffi::AnyBuffer dy, ffi::AnyBuffer dfinal, Result workspace,
                                  Result dx, Result ddt, Result da, Result db, Result dc, Result dskip, Result dz,
                                  Result dbias, Result dstate, bool softplus) {
  constexpr const char* op = "ssd_chunk_scan_backward";
  ChunkArguments arguments{x, dt, a, b, c, skip, z, bias, state, starts, softplus};
  if (auto problem = arguments.problem(op)) return *problem;
  Checks checks(op);
  arguments.check_saved(checks, states);
  require_gradients(checks, "x", x, arguments, dy, dfinal, {*dx, *ddt, *da, *db, *dc, *dskip, *dz, *dbias, *dstate});
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    ChunkGradients<T> gradients{in<SavedState<T>>(states),
                                in<T>(dy),
                                in<Wide>(dfinal),
                                out<T>(dx),
                                out<T>(ddt),
                                out<Wide>(da),
                                out<T>(db),
                                out<T>(dc),
                                out<Wide>(dskip),
                                out<T>(dz),
                                out<Wide>(dbias),
                                out<Wide>(dstate)};
    return to_error(op, chunk_scan_backward(device.executor(*workspace), arguments.scan<T>(), gradients));
  });
}

BARACUDA_TARGET(ssd_chunk_scan_backward, chunk_backward_handler,
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
