// The FFI targets of gradients of linear systems: a [batches..., n, n], the solution y [batches..., n, k] and its
// cotangent give those of a and b; the inverse y [batches..., n, n] and its cotangent give that of x.
#include "kernels/tiny/lu_backward.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error of_system(Device device, ffi::AnyBuffer a, ffi::AnyBuffer y, ffi::AnyBuffer dy,
                     ffi::Result<ffi::AnyBuffer> da, ffi::Result<ffi::AnyBuffer> db) {
  constexpr const char* op = "solve_backward";
  Checks checks(op);
  systems(checks, a, y, dy);
  as_large(checks, "da", *da, "a", a), as_large(checks, "db", *db, "y", y);
  if (checks.failed()) return checks.error();
  int n = side_of(a), k = side_of(y);
  int64_t batches = batches_of(a);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::SolveBackward> work{
        batches, n, k, {{n, n, in<T>(a), out<T>(da)}, {n, k, in<T>(y)}, {n, k, in<T>(dy), out<T>(db)}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n / 2 + 2 * n * k + 16)));
  });
}

ffi::Error of_inverse(Device device, ffi::AnyBuffer y, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "inverse_backward";
  Checks checks(op);
  square_matrices(checks, "y", y);
  as_large(checks, "dy", dy, "y", y), as_large(checks, "dx", *dx, "y", y);
  if (checks.failed()) return checks.error();
  int n = side_of(y);
  int64_t batches = batches_of(y);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(y.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::InverseBackward> work{
        batches, n, n, {{n, n, in<T>(y)}, {n, n, in<T>(dy), out<T>(dx)}, {n, n, nullptr, nullptr}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 2 + 8)));
  });
}

BARACUDA_TARGET(solve_backward, of_system, operands<3>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(inverse_backward, of_inverse, operands<2>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
