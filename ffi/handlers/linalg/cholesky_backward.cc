// The FFI target of the gradient of Cholesky factors: y [batches..., n, n] and its cotangent, which gives that of x.
#include "kernels/tiny/cholesky_backward.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error gradient(Device device, ffi::AnyBuffer y, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx, bool upper) {
  constexpr const char* op = "cholesky_backward";
  Checks checks(op);
  square_matrices(checks, "y", y);
  as_large(checks, "dy", dy, "y", y), as_large(checks, "dx", *dx, "y", y);
  if (checks.failed()) return checks.error();
  int n = side_of(y);
  int64_t batches = batches_of(y);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(y.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::CholeskyBackward> work{batches, n, n, {{n, n, in<T>(y)}, {n, n, in<T>(dy), out<T>(dx)}}, {upper}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 3 / 2 + 8)));
  });
}

BARACUDA_TARGET(cholesky_backward, gradient, operands<2>().Ret<ffi::AnyBuffer>().Attr<bool>("upper"));

}  // namespace
}  // namespace baracuda
