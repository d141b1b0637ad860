// The FFI target of eigenvalues: x [batches..., n, n], which gives w [batches..., n] and v of x's shape.
#include "kernels/tiny/eigh.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error eigenvalues(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> w, ffi::Result<ffi::AnyBuffer> v) {
  constexpr const char* op = "eigh";
  Checks checks(op);
  square_matrices(checks, "x", x, tiny::Eigh::largest)
      .same_shape("v", *v, "x", x)
      .same_dtype("v", *v, "x", x)
      .same_dtype("w", *w, "x", x);
  if (checks.failed()) return checks.error();
  int n = side_of(x);
  of_batches(checks, "w", *w, x, int64_t(n));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(x);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Eigh> work{
        batches,
        n,
        n,
        {{n, n, in<T>(x)}, {n, 1, nullptr, out<T>(w)}, {n, n, nullptr, out<T>(v)}, {2, (n + 1) / 2, nullptr, nullptr}},
        {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 40 + 16)));
  });
}

BARACUDA_TARGET(eigh, eigenvalues, operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
