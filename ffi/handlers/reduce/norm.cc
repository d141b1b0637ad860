// The FFI target of norms.
#include "reduce.h"

#include "kernels/reduce/norm.h"

namespace baracuda {
namespace {

ffi::Error norm_handler(Device device, Array x, Output workspace, Output y, int64_t rank, double p) {
  Reducing reducing("reduce_norm", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(p != 0 && std::isfinite(p), "p must be finite and not 0, got ", p);
  if (reducing.checks.failed()) return reducing.checks.error();
  if (p == 1) return sum(reducing, device, *workspace, y, 1, true);
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (p == 2) return reducing.reduce(device, *workspace, ReduceNormTwo<T>{out<T>(y)});
    return reducing.reduce(device, *workspace, ReduceNorm<T>{out<T>(y), p});
  });
}

BARACUDA_TARGET(reduce_norm, norm_handler, reduced().Attr<int64_t>("rank").Attr<double>("p"));

}  // namespace
}  // namespace baracuda
