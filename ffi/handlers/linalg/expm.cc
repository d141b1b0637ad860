// The FFI target of exponentials: x [batches..., n, n], which gives y of its shape.
#include "kernels/tiny/expm.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error exponentials(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "matrix_exp";
  Checks checks(op);
  square_matrices(checks, "x", x, tiny::MatrixExp::largest).same_shape("y", *y, "x", x).same_dtype("y", *y, "x", x);
  if (checks.failed()) return checks.error();
  int n = side_of(x);
  int64_t batches = batches_of(x);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    TinyArray<T> other{n, n};
    Tiny<T, tiny::MatrixExp> work{
        batches, n, n, {{n, n, in<T>(x)}, {n, n, nullptr, out<T>(y)}, other, other, other, other}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 10 + 16)));
  });
}

BARACUDA_TARGET(matrix_exp, exponentials, operands<1>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
