// The FFI targets of singular values: `svd` of x [batches..., m, n], which gives u [batches..., m, k], s [batches...,
// k] and vh [batches..., k, n], where k is the smaller of m and n; and `svd_values`, which gives s alone.
#include "kernels/tiny/svd.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error decomposed(const char* op, Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> s, ffi::AnyBuffer* u,
                      ffi::AnyBuffer* vh) {
  Checks checks(op);
  small_matrices(checks, "x", x).same_dtype("s", *s, "x", x);
  if (u != nullptr) checks.same_dtype("u", *u, "x", x).same_dtype("vh", *vh, "x", x);
  if (checks.failed()) return checks.error();
  int m = rows_of(x), n = side_of(x), count = std::min(m, n);
  of_batches(checks, "s", *s, x, int64_t(count));
  if (u != nullptr) {
    of_batches(checks, "u", *u, x, int64_t(m), int64_t(count));
    of_batches(checks, "vh", *vh, x, int64_t(count), int64_t(n));
  }
  if (checks.failed()) return checks.error();
  int64_t batches = batches_of(x);
  if (batches == 0 || count == 0) return ffi::Error::Success();
  bool has_vectors = u != nullptr;
  return for_wide(x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto written = [](ffi::AnyBuffer* y) { return y == nullptr ? nullptr : static_cast<T*>(y->untyped_data()); };
    int of_vectors = has_vectors ? count : 0;
    Tiny<T, tiny::Svd> work{batches,
                            m == n ? n : 0,
                            0,
                            {{m, n, in<T>(x)},
                             {has_vectors ? m : 0, of_vectors, nullptr, written(u)},
                             {of_vectors, n, nullptr, written(vh)},
                             {count, 1, nullptr, out<T>(s)},
                             {count, 1, nullptr, nullptr},
                             {count, 1, nullptr, nullptr}},
                            {m, n, has_vectors}};
    return to_error(op, tiny_matrices(device.executor(), work, count * (m * n * 40 + 16)));
  });
}

ffi::Error vectors(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> u, ffi::Result<ffi::AnyBuffer> s,
                   ffi::Result<ffi::AnyBuffer> vh) {
  return decomposed("svd", device, x, s, &*u, &*vh);
}

ffi::Error values(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> s) {
  return decomposed("svd_values", device, x, s, nullptr, nullptr);
}

BARACUDA_TARGET(svd, vectors, operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(svd_values, values, operands<1>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
