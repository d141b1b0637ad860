// FFI targets that put elements into rows of zeros by an index, or add them to rows.
#include "scatter.h"

namespace baracuda {
namespace {

// index and dy [batches..., items], dx [batches..., count].
ffi::Error scatter_handler(Device device, ffi::AnyBuffer index, ffi::AnyBuffer dy,
                           ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx, bool unique) {
  constexpr const char* op = "scatter_along";
  Checks checks(op);
  auto in = dy.dimensions(), out = dx->dimensions();
  checks.same_shape("index", index, "dy", dy)
      .dtype("index", index, ffi::DataType::S32)
      .same_dtype("the result", *dx, "dy", dy)
      .require(in.size() >= 1 && in.size() == out.size() && std::equal(in.begin(), in.end() - 1, out.begin()),
               "the result must be dy's ", describe(in), " but for the last dimension, got ", describe(out));
  if (checks.failed()) return checks.error();
  auto scatter = [&](auto type) {
    using T = typename decltype(type)::type;
    ScatterShape shape{product(in, 0, in.size() - 1), out.back(), in.back(), unique};
    return to_error(op,
                    scatter_rows(device.executor(*workspace), static_cast<const int32_t*>(index.untyped_data()),
                                 static_cast<const T*>(dy.untyped_data()), static_cast<T*>(dx->untyped_data()), shape));
  };
  if (dy.element_type() == ffi::DataType::S32) return scatter(Type<int32_t>{});
  return for_float(op, "dy", dy.element_type(), scatter);
}

ffi::Error add_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer index, ffi::AnyBuffer src,
                       ffi::Result<ffi::AnyBuffer> y, bool wraps) {
  constexpr const char* op = "scatter_add";
  Checks checks(op);
  check_scattered(checks, x, index, src, *y);
  if (checks.failed()) return checks.error();
  return for_number(op, "x", x.element_type(), [&](auto type) {
    using T = Modular<typename decltype(type)::type>;
    ScatterSum<T> sum{static_cast<const T*>(x.untyped_data()), static_cast<T*>(y->untyped_data())};
    return combine(op, device, sum, x, index, src, wraps);
  });
}

BARACUDA_TARGET(scatter_along, scatter_handler,
                operands<2>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<bool>("unique"));
BARACUDA_TARGET(scatter_add, add_handler, operands<3>().Ret<ffi::AnyBuffer>().Attr<bool>("wraps"));

}  // namespace
}  // namespace baracuda
