// The FFI targets of gradients of what elimination gives: `lu_backward` of the factors [batches..., m, n] as one
// matrix, the order of rows and the factors' cotangent; `det_backward` and `slogdet_backward` of x [batches..., n, n]
// and a cotangent for each matrix, of the determinant or of the logarithm of its magnitude.
#include "kernels/tiny/lu_backward.h"

#include "linalg.h"

namespace baracuda {
namespace {

// That x are square matrices, each with a number in dy, and that dx has their shape.
Checks& scaled(Checks& checks, const ffi::AnyBuffer& x, const ffi::AnyBuffer& dy, const ffi::AnyBuffer& dx) {
  square_matrices(checks, "x", x).same_dtype("dy", dy, "x", x);
  as_large(checks, "dx", dx, "x", x);
  return checks.failed() ? checks : of_batches(checks, "dy", dy, x);
}

ffi::Error of_factors(Device device, ffi::AnyBuffer y, ffi::AnyBuffer order, ffi::AnyBuffer dy,
                      ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "lu_backward";
  Checks checks(op);
  small_matrices(checks, "y", y).dtype("the order", order, ffi::DataType::S32);
  as_large(checks, "dy", dy, "y", y), as_large(checks, "dx", *dx, "y", y);
  if (checks.failed()) return checks.error();
  int n = side_of(y), m = rows_of(y);
  of_batches(checks, "the order", order, y, int64_t(m));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(y);
  if (batches == 0 || m == 0 || n == 0) return ffi::Error::Success();
  return for_wide(y.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::LuBackward> work{
        batches,
        m == n ? n : 0,
        0,
        {{m, n, in<T>(y), out<T>(dx)}, {m, 1, nullptr, nullptr, nullptr, in<int32_t>(order)}, {m, n, in<T>(dy)}},
        {m, n}};
    return to_error(op, tiny_matrices(device.executor(), work, m * n * (m + n + 8)));
  });
}

ffi::Error of_determinant(Device device, ffi::AnyBuffer x, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "det_backward";
  Checks checks(op);
  if (scaled(checks, x, dy, *dx).failed()) return checks.error();
  int n = side_of(x);
  int64_t batches = batches_of(x);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::DetBackward> work{
        batches,
        n,
        n,
        {{n, n, in<T>(x)}, {1, 1, in<T>(dy)}, {n, 1, nullptr, nullptr}, {n, n, nullptr, out<T>(dx)}},
        {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 5 / 2 + 32)));
  });
}

ffi::Error of_logarithm(Device device, ffi::AnyBuffer x, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "slogdet_backward";
  Checks checks(op);
  if (scaled(checks, x, dy, *dx).failed()) return checks.error();
  int n = side_of(x);
  int64_t batches = batches_of(x);
  if (batches == 0 || n == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::SlogdetBackward> work{
        batches, n, n, {{n, n, in<T>(x)}, {1, 1, in<T>(dy)}, {n, n, nullptr, out<T>(dx)}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n * 2 + 16)));
  });
}

BARACUDA_TARGET(lu_backward, of_factors, operands<3>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(det_backward, of_determinant, operands<2>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(slogdet_backward, of_logarithm, operands<2>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
