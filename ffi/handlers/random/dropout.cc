// The FFI target of dropout: x [batches..., n] gives y, of rows with the probability of being kept and the factor of
// what is.
#include "handlers/random/random.h"

namespace baracuda {
namespace {

ffi::Error philox_dropout_call(Device device, Array x, Array streams, Output y) {
  constexpr const char* op = "philox_dropout";
  Checks checks(op);
  checks.same_shape("the result", *y, "x", x).same_dtype("the result", *y, "x", x);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    return draw<Dropout<typename decltype(type)::type>>(op, device, streams, x.untyped_data(), y);
  });
}

BARACUDA_TARGET(philox_dropout, philox_dropout_call, operands<2>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
