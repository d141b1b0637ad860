// The FFI target of norms.
#include "reduce.h"

#include "kernels/reduce/norm.h"

namespace baracuda {
namespace {

ffi::Error norm_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank,
                        double p) {
  Reducing reducing("reduce_norm", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(p != 0 && std::isfinite(p), "p must be finite and not 0, got ", p)
      .require(more.size() == 0 || (p != 1 && is_rounded(x.element_type())), "expected one result, got ",
               more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  if (p == 1) return sum(reducing, device, *workspace, y, 1, true);  // the gradient reads no norm
  if (p != 2) return norm_of_powers(reducing, device, *workspace, y, more, p);
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using T = typename decltype(type)::type;
    auto unrounded = saved_wide<T>(reducing, more, "wide y");
    if (unrounded.has_error()) return unrounded.error();
    return reducing.reduce(device, *workspace, ReduceNormTwo<T>{out<T>(y), *unrounded});
  });
}

BARACUDA_TARGET(reduce_norm, norm_handler, reduced().RemainingRets().Attr<int64_t>("rank").Attr<double>("p"));

}  // namespace
}  // namespace baracuda
