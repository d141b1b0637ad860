// The FFI target of random bits: streams [batches..., 6], of which each row has a key of four words and the first byte,
// give y [batches..., n].
#include "handlers/target.h"
#include BARACUDA_DRIVER(counter)

namespace baracuda {
namespace {

ffi::Error philox_bits_call(Device device, ffi::AnyBuffer streams, ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "philox_bits";
  Checks checks(op);
  auto in = streams.dimensions(), found = y->dimensions();
  checks.dtype("streams", streams, ffi::DataType::U32)
      .require(in.size() >= 1 && in.back() == 6, "streams must have six words a row, got ", describe(in))
      .require(found.size() == in.size() && std::equal(in.begin(), in.end() - 1, found.begin()),
               "the result must have one row for each of streams, ", describe(in), ", got ", describe(found));
  if (checks.failed()) return checks.error();
  auto run = [&](auto type) {
    using T = typename decltype(type)::type;
    PhiloxRows<T> rows{baracuda::in<uint32_t>(streams), out<T>(y), product(in, 0, in.size() - 1), found.back()};
    return to_error(op, fill_rows(device.executor(), rows));
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
