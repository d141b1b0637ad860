// The FFI target of gradients of cumulative maxima and minima.
#include "scan.h"

namespace baracuda {
namespace {

ffi::Error extremum_backward_handler(Device device, ffi::AnyBuffer index, ffi::AnyBuffer dy,
                                     ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx,
                                     bool reverse) {
  Scanning scanning = Scanning("cumextremum_backward", "dy", dy).same_shape("index", index).same("the result", *dx);
  scanning.checks.dtype("index", index, ffi::DataType::S32);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    CumExtremumBackward<T> functor{in<int32_t>(index), in<T>(dy), out<T>(dx)};
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

BARACUDA_TARGET(cumextremum_backward, extremum_backward_handler, scanned<2>().Attr<bool>("reverse"));

}  // namespace
}  // namespace baracuda
