// The FFI target of normal numbers, of rows with a mean and a standard deviation.
#include "handlers/random/random.h"

namespace baracuda {
namespace {

ffi::Error philox_normal_call(Device device, Array streams, Output y) {
  constexpr const char* op = "philox_normal";
  return for_float(op, "the result", y->element_type(), [&](auto type) {
    return draw<Normal<typename decltype(type)::type>>(op, device, streams, nullptr, y);
  });
}

BARACUDA_TARGET(philox_normal, philox_normal_call, operands<1>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
