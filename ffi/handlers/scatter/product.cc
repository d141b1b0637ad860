// FFI targets of the products of rows and of elements that an index names, and of their gradients.
#include "scatter.h"

namespace baracuda {
namespace {

ffi::Error multiply_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer index, ffi::AnyBuffer src,
                            ffi::Result<ffi::AnyBuffer> y, bool wraps) {
  constexpr const char* op = "scatter_mul";
  Checks checks(op);
  check_scattered(checks, x, index, src, *y);
  if (checks.failed()) return checks.error();
  return for_number(op, "x", x.element_type(), [&](auto type) {
    using T = Modular<typename decltype(type)::type>;
    return combine(op, device, ScatterProd<T>{in<T>(x), out<T>(y)}, x, index, src, wraps);
  });
}

ffi::Error backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer index, ffi::AnyBuffer src,
                            ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx, ffi::Result<ffi::AnyBuffer> dsrc,
                            bool wraps) {
  constexpr const char* op = "scatter_mul_backward";
  Checks checks(op);
  check_scattered(checks, x, index, src, *dx);
  checks.same_shape("dy", dy, "x", x)
      .same_dtype("dy", dy, "x", x)
      .same_shape("the second result", *dsrc, "src", src)
      .same_dtype("the second result", *dsrc, "x", x);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    ScatterProdBackward<T> backward{in<T>(x), in<T>(dy), out<T>(dx), out<T>(dsrc)};
    return combine(op, device, backward, x, index, src, wraps);
  });
}

BARACUDA_TARGET(scatter_mul, multiply_handler, operands<3>().Ret<ffi::AnyBuffer>().Attr<bool>("wraps"));
BARACUDA_TARGET(scatter_mul_backward, backward_handler,
                operands<4>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<bool>("wraps"));

}  // namespace
}  // namespace baracuda
