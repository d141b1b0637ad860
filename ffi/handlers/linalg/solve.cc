// The FFI targets of linear systems: `solve` of a [batches..., n, n] and b [batches..., n, k], which gives y of b's
// shape, and `inverse` of x [batches..., n, n].
#include "kernels/tiny/lu.h"
#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error solution(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "solve";
  Checks checks(op);
  systems(checks, a, b, *y);
  if (checks.failed()) return checks.error();
  int n = side_of(a), k = side_of(b);
  int64_t batches = batches_of(a);
  if (batches == 0 || n == 0 || k == 0) return ffi::Error::Success();
  return for_wide(a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Solve> work{batches, n, k, {{n, n, in<T>(a)}, {n, k, in<T>(b), out<T>(y)}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n / 2 + n * k + 16)));
  });
}

ffi::Error inverse_matrices(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "inverse";
  Checks checks(op);
  square_matrices(checks, "x", x).same_shape("y", *y, "x", x).same_dtype("y", *y, "x", x);
  if (checks.failed()) return checks.error();
  int n = side_of(x);
  int64_t batches = batches_of(x);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Inverse> work{batches, n, n, {{n, n, in<T>(x)}, {n, n, nullptr, out<T>(y)}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 2 + 16)));
  });
}

BARACUDA_TARGET(solve, solution, operands<2>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(inverse, inverse_matrices, operands<1>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
