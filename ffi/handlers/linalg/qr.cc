// The FFI targets of Householder reflections: `geqrf` of x [batches..., m, n], as one matrix and tau; `qr`, as q
// [batches..., m, k] and r [batches..., k, n], where k is the smaller of m and n; `ormqr` of x, tau
// [batches..., k] and c [batches..., m, p], which gives y of c's shape.
#include "kernels/tiny/qr.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error reflections(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y,
                       ffi::Result<ffi::AnyBuffer> tau) {
  constexpr const char* op = "geqrf";
  Checks checks(op);
  small_matrices(checks, "x", x)
      .same_shape("y", *y, "x", x)
      .same_dtype("y", *y, "x", x)
      .same_dtype("tau", *tau, "x", x);
  if (checks.failed()) return checks.error();
  int m = rows_of(x), n = side_of(x), count = std::min(m, n);
  of_batches(checks, "tau", *tau, x, int64_t(count));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(x);
  if (batches == 0 || count == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Geqrf> work{batches,
                              m == n ? n : 0,
                              0,
                              {{m, n, in<T>(x), out<T>(y)}, {count, 1, nullptr, out<T>(tau)}, {n, 1, nullptr, nullptr}},
                              {m, n}};
    return to_error(op, tiny_matrices(device.executor(), work, count * (2 * m * n + 16)));
  });
}

ffi::Error factors(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> q, ffi::Result<ffi::AnyBuffer> r) {
  constexpr const char* op = "qr";
  Checks checks(op);
  small_matrices(checks, "x", x).same_dtype("q", *q, "x", x).same_dtype("r", *r, "x", x);
  if (checks.failed()) return checks.error();
  int m = rows_of(x), n = side_of(x), count = std::min(m, n);
  of_batches(checks, "q", *q, x, int64_t(m), int64_t(count));
  of_batches(checks, "r", *r, x, int64_t(count), int64_t(n));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(x);
  if (batches == 0 || count == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Qr> work{batches,
                           m == n ? n : 0,
                           0,
                           {{m, n, in<T>(x)},
                            {m, count, nullptr, out<T>(q)},
                            {count, n, nullptr, out<T>(r)},
                            {count, 1, nullptr, nullptr},
                            {n, 1, nullptr, nullptr}},
                           {m, n}};
    return to_error(op, tiny_matrices(device.executor(), work, count * (m * (2 * n + count) + 16)));
  });
}

ffi::Error product_of(Device device, ffi::AnyBuffer x, ffi::AnyBuffer tau, ffi::AnyBuffer c,
                      ffi::Result<ffi::AnyBuffer> y, bool transpose) {
  constexpr const char* op = "ormqr";
  Checks checks(op);
  small_matrices(checks, "x", x).same_dtype("tau", tau, "x", x).same_dtype("c", c, "x", x);
  small_matrices(checks, "c", c).same_shape("y", *y, "c", c).same_dtype("y", *y, "c", c);
  checks.require(tau.dimensions().size() > 0, "tau must have a dimension");
  if (checks.failed()) return checks.error();
  int m = rows_of(x), n = side_of(x), count = side_of(tau), columns = side_of(c);
  checks.require(count <= std::min(m, n), "tau must have at most ", std::min(m, n), " elements a matrix, got ", count);
  of_batches(checks, "tau", tau, x, int64_t(count));
  of_batches(checks, "c", c, x, int64_t(m), int64_t(columns));
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(x);
  if (batches == 0 || m == 0 || columns == 0) return ffi::Error::Success();
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::Ormqr> work{batches,
                              0,
                              columns,
                              {{m, n, in<T>(x)}, {count, 1, in<T>(tau)}, {m, columns, in<T>(c), out<T>(y)}},
                              {m, count, transpose}};
    return to_error(op, tiny_matrices(device.executor(), work, (count + 1) * (2 * m * columns + 16)));
  });
}

BARACUDA_TARGET(geqrf, reflections, operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(qr, factors, operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(ormqr, product_of, operands<3>().Ret<ffi::AnyBuffer>().Attr<bool>("transpose"));

}  // namespace
}  // namespace baracuda
