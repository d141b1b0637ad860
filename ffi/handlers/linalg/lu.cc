// The FFI targets of what elimination gives: `lu` of x [batches..., m, n], as one matrix, the exchanges of rows and the
// order of rows; `lu_determinant` of x [batches..., n, n], and `lu_diagonal`, as the diagonal of U and the sign of the
// permutation.
#include "kernels/tiny/lu.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error factors(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, ffi::Result<ffi::AnyBuffer> pivots,
                   ffi::Result<ffi::AnyBuffer> order) {
  constexpr const char* op = "lu";
  Checks checks(op);
  small_matrices(checks, "x", x)
      .same_shape("y", *y, "x", x)
      .same_dtype("y", *y, "x", x)
      .dtype("the pivots", *pivots, ffi::DataType::S32)
      .dtype("the order", *order, ffi::DataType::S32);
  if (checks.failed()) return checks.error();
  int n = side_of(x), m = rows_of(x);
  of_batches(checks, "the pivots", *pivots, x, int64_t(std::min(m, n)));
  of_batches(checks, "the order", *order, x, int64_t(m));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(x);
  if (batches == 0 || m == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Lu> work{batches,
                           m == n ? n : 0,
                           0,
                           {{m, n, in<T>(x), out<T>(y)},
                            {std::min(m, n), 1, nullptr, nullptr, out<int32_t>(pivots)},
                            {m, 1, nullptr, nullptr, out<int32_t>(order)}},
                           {m, n}};
    return to_error(op, tiny_matrices(device.executor(), work, m * (n * m / 2 + 16)));
  });
}

ffi::Error diagonal(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, ffi::Result<ffi::AnyBuffer> sign) {
  constexpr const char* op = "lu_diagonal";
  Checks checks(op);
  square_matrices(checks, "x", x).same_dtype("y", *y, "x", x).same_dtype("the sign", *sign, "x", x);
  if (checks.failed()) return checks.error();
  int n = side_of(x);
  of_batches(checks, "y", *y, x, int64_t(n));
  of_batches(checks, "the sign", *sign, x);
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(x);
  if (batches == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Diagonal> work{
        batches, n, n, {{n, n, in<T>(x)}, {n, 1, nullptr, out<T>(y)}, {1, 1, nullptr, out<T>(sign)}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n / 2 + 16) + 1));
  });
}

ffi::Error determinant(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "lu_determinant";
  Checks checks(op);
  square_matrices(checks, "x", x).same_dtype("y", *y, "x", x);
  if (checks.failed()) return checks.error();
  of_batches(checks, "y", *y, x);
  if (checks.failed()) return checks.error();
  int n = side_of(x);
  int64_t batches = batches_of(x);
  if (batches == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Determinant> work{batches, n, n, {{n, n, in<T>(x)}, {1, 1, nullptr, out<T>(y)}}, {}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * n / 2 + 16) + 1));
  });
}

BARACUDA_TARGET(lu, factors, operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(lu_determinant, determinant, operands<1>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(lu_diagonal, diagonal, operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
