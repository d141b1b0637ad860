// The FFI targets of gradients of eigenvalues: w [batches..., n], v [batches..., n, n] and the cotangents of both give
// that of x; and v and the cotangent of w alone.
#include "kernels/tiny/eigh_backward.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error gradient(Device device, ffi::AnyBuffer w, ffi::AnyBuffer v, ffi::AnyBuffer dw, ffi::AnyBuffer dv,
                    ffi::Result<ffi::AnyBuffer> dx, bool drops_equal) {
  constexpr const char* op = "eigh_backward";
  Checks checks(op);
  square_matrices(checks, "v", v, tiny::EighBackward::largest);
  as_large(checks, "dv", dv, "v", v), as_large(checks, "dx", *dx, "v", v);
  checks.same_dtype("w", w, "v", v).same_dtype("dw", dw, "v", v);
  if (checks.failed()) return checks.error();
  int n = side_of(v);
  of_batches(checks, "w", w, v, int64_t(n));
  of_batches(checks, "dw", dw, v, int64_t(n));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(v);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(v.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::EighBackward> work{
        batches,
        n,
        n,
        {{n, 1, in<T>(w)}, {n, n, in<T>(v)}, {n, 1, in<T>(dw)}, {n, n, in<T>(dv)}, {n, n, nullptr, out<T>(dx)}},
        {drops_equal}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 3 + 16)));
  });
}

ffi::Error of_values(Device device, ffi::AnyBuffer v, ffi::AnyBuffer dw, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "eigenvalues_backward";
  Checks checks(op);
  square_matrices(checks, "v", v, tiny::EigenvaluesBackward::largest).same_dtype("dw", dw, "v", v);
  as_large(checks, "dx", *dx, "v", v);
  if (checks.failed()) return checks.error();
  int n = side_of(v);
  of_batches(checks, "dw", dw, v, int64_t(n));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(v);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(v.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::EigenvaluesBackward> work{
        batches, n, n, {{n, n, in<T>(v)}, {n, 1, in<T>(dw)}, {n, n, nullptr, out<T>(dx)}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n / 2 + 8)));
  });
}

BARACUDA_TARGET(eigh_backward, gradient, operands<4>().Ret<ffi::AnyBuffer>().Attr<bool>("drops_equal"));
BARACUDA_TARGET(eigenvalues_backward, of_values, operands<2>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
