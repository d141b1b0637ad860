// The FFI target of order statistics of arrays [batches..., count] along the last dimension.
#include "handlers/target.h"
#include BARACUDA_DRIVER(select)

namespace baracuda {
namespace {

bool same_batches(Dimensions x, Dimensions y) {
  return x.size() >= 1 && x.size() == y.size() && std::equal(x.begin(), x.end() - 1, y.begin());
}

// ranks [batches..., many] may have fewer batches than x: each then serves several of x's.
ffi::Error statistics_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer ranks,
                              ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> values,
                              ffi::Result<ffi::AnyBuffer> indices) {
  constexpr const char* op = "order_statistics";
  Checks checks(op);
  auto in = x.dimensions(), many = ranks.dimensions(), out = values->dimensions();
  checks.dtype("ranks", ranks, ffi::DataType::S32)
      .require(in.size() >= 1 && many.size() >= 1 && many.size() <= in.size() &&
                   std::equal(many.begin(), many.end() - 1, in.begin()),
               "ranks must begin with dimensions of operand, ", describe(in), ", got ", describe(many))
      .same_dtype("the first result", *values, "operand", x)
      .same_shape("the second result", *indices, "the first", *values)
      .dtype("the second result", *indices, ffi::DataType::S32)
      .require(same_batches(in, out), "the first result must have the batches of operand, ", describe(in), ", got ",
               describe(out));
  if (checks.failed()) return checks.error();
  checks
      .require(out.back() == many.back(), "the first result must have a column for each of ", many.back(),
               " ranks, got ", describe(out))
      .require(in.back() > 0 || out.back() == 0, "a row without elements has no ranks")
      .require(in.back() <= INT32_MAX, "at most 2^31 - 1 elements of a row are supported, got ", in.back());
  if (checks.failed()) return checks.error();
  return for_key(op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SelectShape shape{product(in, 0, in.size() - 1), in.back(), many.back(), product(many, 0, many.size() - 1)};
    return to_error(
        op, select_rows(device.executor(*workspace), static_cast<const T*>(x.untyped_data()),
                        static_cast<const int32_t*>(ranks.untyped_data()), static_cast<T*>(values->untyped_data()),
                        static_cast<int32_t*>(indices->untyped_data()), shape));
  });
}

BARACUDA_TARGET(order_statistics, statistics_handler,
                operands<2>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
