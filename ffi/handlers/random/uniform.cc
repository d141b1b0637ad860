// The FFI target of uniform numbers, of rows with low and high - low.
#include "handlers/random/random.h"

namespace baracuda {
namespace {

ffi::Error philox_uniform_call(Device device, Array streams, Output y) {
  constexpr const char* op = "philox_uniform";
  return for_float(op, "the result", y->element_type(), [&](auto type) {
    return draw<Uniform<typename decltype(type)::type>>(op, device, streams, nullptr, y);
  });
}

BARACUDA_TARGET(philox_uniform, philox_uniform_call, operands<1>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
