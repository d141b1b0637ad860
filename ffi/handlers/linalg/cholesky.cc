// The FFI target of Cholesky factors: x [batches..., n, n], which gives y of its shape.
#include "kernels/tiny/cholesky.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error factors(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, bool upper) {
  constexpr const char* op = "cholesky";
  Checks checks(op);
  square_matrices(checks, "x", x).same_shape("y", *y, "x", x).same_dtype("y", *y, "x", x);
  if (checks.failed()) return checks.error();
  int n = side_of(x);
  int64_t batches = batches_of(x);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Cholesky> work{batches, n, n, {{n, n, in<T>(x), out<T>(y)}}, {upper}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n / 6 + 4)));
  });
}

BARACUDA_TARGET(cholesky, factors, operands<1>().Ret<ffi::AnyBuffer>().Attr<bool>("upper"));

}  // namespace
}  // namespace baracuda
