// Norms of which elements are raised to powers other than 1 and 2: half of what the norms' FFI target has to compile.
#include "reduce.h"

#include "kernels/reduce/norm.h"

namespace baracuda {

ffi::Error norm_of_powers(Reducing reducing, Device& device, const Array& workspace, Output& y, ffi::RemainingRets more,
                          double p) {
  return for_float(reducing.op, "operand", reducing.x.element_type(), [&](auto type) -> ffi::Error {
    using T = typename decltype(type)::type;
    auto unrounded = saved_wide<T>(reducing, more, "wide y");
    if (unrounded.has_error()) return unrounded.error();
    return reducing.reduce(device, workspace, ReduceNorm<T>{out<T>(y), *unrounded, p});
  });
}

}  // namespace baracuda
