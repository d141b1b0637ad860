// FFI targets that put items into rows of zeros by an index, the last one at a position, and that read them back.
#include "handlers/target.h"
#include BARACUDA_DRIVER(scatter_last)

namespace baracuda {
namespace {

// `narrow` [batches..., items] as the index has, `wide` [batches..., count].
ScatterLastShape checked(Checks& checks, ffi::AnyBuffer index, const char* narrow_name, ffi::AnyBuffer narrow,
                         const char* wide_name, ffi::AnyBuffer wide) {
  auto items = narrow.dimensions(), count = wide.dimensions();
  checks.same_shape("index", index, narrow_name, narrow)
      .dtype("index", index, ffi::DataType::S32)
      .same_dtype(wide_name, wide, narrow_name, narrow)
      .require(items.size() >= 1 && items.size() == count.size() &&
                   std::equal(items.begin(), items.end() - 1, count.begin()),
               wide_name, " must be ", describe(items), " but for the last dimension, got ", describe(count))
      .require(items.size() >= 1 && count.size() >= 1 && std::max(items.back(), count.back()) <= 0x7fffffff,
               "rows must be of fewer than 2^31 elements");
  if (checks.failed()) return {};
  return {product(items, 0, items.size() - 1), count.back(), items.back()};
}

ffi::Error scatter_handler(Device device, ffi::AnyBuffer index, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                           ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "scatter_last";
  Checks checks(op);
  ScatterLastShape shape = checked(checks, index, "x", x, "the result", *y);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, scatter_last(device.executor(*workspace), in<int32_t>(index), in<T>(x), out<T>(y), shape));
  });
}

ffi::Error take_handler(Device device, ffi::AnyBuffer index, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> workspace,
                        ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "take_last";
  Checks checks(op);
  ScatterLastShape shape = checked(checks, index, "the result", *dx, "dy", dy);
  if (checks.failed()) return checks.error();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, take_last(device.executor(*workspace), in<int32_t>(index), in<T>(dy), out<T>(dx), shape));
  });
}

BARACUDA_TARGET(scatter_last, scatter_handler, operands<2>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(take_last, take_handler, operands<2>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
