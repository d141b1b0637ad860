// The FFI target of triangular systems: a [batches..., n, n] and b [batches..., n, k], which gives y of b's shape.
#include "kernels/tiny/triangular.h"

#include "linalg.h"

namespace baracuda {
namespace {

ffi::Error solution(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> y, bool upper,
                    bool transpose, bool unit) {
  constexpr const char* op = "triangular_solve";
  Checks checks(op);
  systems(checks, a, b, *y);
  if (checks.failed()) return checks.error();
  int n = side_of(a), k = side_of(b);
  int64_t batches = batches_of(a);
  if (batches == 0 || n == 0 || k == 0) return ffi::Error::Success();
  return for_wide(a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Tiny<T, tiny::TriangularSolve> work{
        batches, n, k, {{n, n, in<T>(a)}, {n, k, in<T>(b), out<T>(y)}}, {upper, transpose, unit}};
    return to_error(op, tiny_matrices(device.executor(), work, n * (n * k / 2 + 4)));
  });
}

BARACUDA_TARGET(triangular_solve, solution,
                operands<2>().Ret<ffi::AnyBuffer>().Attr<bool>("upper").Attr<bool>("transpose").Attr<bool>("unit"));

}  // namespace
}  // namespace baracuda
