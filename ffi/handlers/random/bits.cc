// The FFI target of random bits.
#include "handlers/random/random.h"

namespace baracuda {
namespace {

ffi::Error philox_bits_call(Device device, Array streams, Output y) {
  constexpr const char* op = "philox_bits";
  auto run = [&](auto type) {
    return draw<RandomBits<typename decltype(type)::type>>(op, device, streams, nullptr, y);
  };
  switch (y->element_type()) {
    case ffi::DataType::U8:
      return run(Type<uint8_t>{});
    case ffi::DataType::U16:
      return run(Type<uint16_t>{});
    case ffi::DataType::U32:
      return run(Type<uint32_t>{});
    case ffi::DataType::U64:
      return run(Type<uint64_t>{});
    default:
      return invalid(op, "the result must have an unsigned dtype, got type ", int(y->element_type()));
  }
}

BARACUDA_TARGET(philox_bits, philox_bits_call, operands<1>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
