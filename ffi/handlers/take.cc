// The FFI target that takes rows: x [batches..., n, d] and index [some of the batches..., m], which give y [batches...,
// m, d]. Rows whose number is outside of x have the element
// whose 16 bytes are `fill`, or the first of them.
#include "target.h"
#include BARACUDA_DRIVER(take)

#include "elements.h"

namespace baracuda {
namespace {

ffi::Error take_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer index, ffi::Result<ffi::AnyBuffer> y,
                        Dimensions fill) {
  constexpr const char* op = "take_rows";
  Checks checks(op);
  auto in = x.dimensions(), order = index.dimensions(), out = y->dimensions();
  require_elements(checks, "x", x);
  checks.dtype("index", index, ffi::DataType::S32)
      .same_dtype("the result", *y, "x", x)
      .require(in.size() >= 2, "x must have rank 2 or more, got ", describe(in))
      .require(1 <= order.size() && order.size() < in.size() && std::equal(order.begin(), order.end() - 1, in.begin()),
               "index must begin with batches of x, ", describe(in), ", got ", describe(order))
      .require(out.size() == in.size() && std::equal(in.begin(), in.end() - 2, out.begin()) &&
                   out.back() == in.back() && out[out.size() - 2] == order.back(),
               "the result must be x's ", describe(in), " with ", order.size() ? order.back() : 0, " rows, got ",
               describe(out));
  checks.require(fill.size() == 2, "fill must be two numbers, got ", describe(fill));
  if (checks.failed()) return checks.error();
  TakeShape shape{product(in, 0, in.size() - 2), in[in.size() - 2], order.back(), in.back(), 1};
  if (shape.batches * shape.rows * shape.columns == 0) return ffi::Error::Success();
  shape.sharing = shape.batches / product(order, 0, order.size() - 1);
  int64_t bytes = bytes_of(x.element_type());
  return to_error(op, for_element(shape.columns * bytes, [&](auto element) {
                    using Element = decltype(element);
                    shape.columns = shape.columns * bytes / int64_t(sizeof(Element));
                    return take_rows(device.executor(), shape, static_cast<const int32_t*>(index.untyped_data()),
                                     static_cast<const Element*>(x.untyped_data()),
                                     filled<Element>(fill.begin(), bytes), static_cast<Element*>(y->untyped_data()));
                  }));
}

BARACUDA_TARGET(take_rows, take_handler, operands<2>().Ret<ffi::AnyBuffer>().Attr<Dimensions>("fill"));

}  // namespace
}  // namespace baracuda
