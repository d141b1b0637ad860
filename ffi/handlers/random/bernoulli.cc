// The FFI target of random bools, of rows with a probability; `bits` is how many of them an element draws, which says
// the dtype of the probability.
#include "handlers/random/random.h"

namespace baracuda {
namespace {

ffi::Error philox_bernoulli_call(Device device, int64_t bits, Array streams, Output y) {
  constexpr const char* op = "philox_bernoulli";
  Checks checks(op);
  checks.dtype("the result", *y, ffi::DataType::PRED);
  if (checks.failed()) return checks.error();
  auto run = [&](auto type) { return draw<Bernoulli<typename decltype(type)::type>>(op, device, streams, nullptr, y); };
  switch (bits) {
    case 8:
      return run(Type<BFloat16>{});
    case 16:
      return run(Type<Half>{});
    case 32:
      return run(Type<float>{});
    case 64:
      return run(Type<double>{});
    default:
      return invalid(op, "bits must be 8, 16, 32 or 64, got ", bits);
  }
}

BARACUDA_TARGET(philox_bernoulli, philox_bernoulli_call,
                operands<0>().Attr<int64_t>("bits").Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
