// The FFI target of the order of floats [batches..., count], the largest first and NaN last: int32 of that shape. Rows
// have at most 16,384 elements.
#include "handlers/target.h"
#include BARACUDA_DRIVER(best_first)

namespace baracuda {
namespace {

ffi::Error order_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> indices) {
  constexpr const char* op = "best_first";
  Checks checks(op);
  auto dims = x.dimensions();
  checks.same_shape("the result", *indices, "operand", x)
      .dtype("the result", *indices, ffi::DataType::S32)
      .require(dims.size() >= 1 && dims.back() <= 16384, "operand must have rows of at most 16384 elements, got ",
               describe(dims));
  if (checks.failed()) return checks.error();
  return for_float(op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    int64_t rows = product(dims, 0, dims.size() - 1);
    return to_error(op, best_first(device.executor(), in<T>(x), rows, dims.back(), out<int32_t>(indices)));
  });
}

BARACUDA_TARGET(best_first, order_handler, operands<1>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
