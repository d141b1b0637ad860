// The FFI target that gathers elements by an index along an axis.
#include "../kernels/along.h"
#include "target.h"
#include BARACUDA_DRIVER(gather)

#include "elements.h"

namespace baracuda {
namespace {

struct Bits128 {
  uint64_t low, high;
};

// Calls `body` with a type of the size of the dtype's: elements are moved as they are.
template <class Body>
ffi::Error for_bits(const char* op, const char* argument, ffi::DataType dtype, const Body& body) {
  switch (dtype) {
    case ffi::DataType::PRED:
    case ffi::DataType::S8:
    case ffi::DataType::U8:
      return body(Type<uint8_t>{});
    case ffi::DataType::S16:
    case ffi::DataType::U16:
    case ffi::DataType::F16:
    case ffi::DataType::BF16:
      return body(Type<uint16_t>{});
    case ffi::DataType::S32:
    case ffi::DataType::U32:
    case ffi::DataType::F32:
      return body(Type<uint32_t>{});
    case ffi::DataType::S64:
    case ffi::DataType::U64:
    case ffi::DataType::F64:
    case ffi::DataType::C64:
      return body(Type<uint64_t>{});
    case ffi::DataType::C128:
      return body(Type<Bits128>{});
    default:
      return invalid(op, argument, " must be bool, a number of 8 to 64 bits or complex, got type ", int(dtype));
  }
}

// x [batches..., count, columns], index and the result [batches..., items, columns]; `fill` as of take_rows. Where the
// index `wraps` it is int32, and negative numbers count from the end.
ffi::Error take_handler(Device device, ffi::AnyBuffer index, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                        Dimensions fill, bool wraps) {
  constexpr const char* op = "take_along";
  Checks checks(op);
  auto in = x.dimensions(), y = out->dimensions();
  checks.same_shape("index", index, "the result", *out)
      .same_dtype("the result", *out, "x", x)
      .require(fill.size() == 2, "fill must be two numbers, got ", describe(fill))
      .require(index.element_type() == ffi::DataType::S32 || index.element_type() == ffi::DataType::U32,
               "index must be int32 or uint32, got type ", int(index.element_type()))
      .require(!wraps || index.element_type() == ffi::DataType::S32, "index must be int32 to count from the end")
      .require(in.size() >= 2 && in.size() == y.size() && std::equal(in.begin(), in.end() - 2, y.begin()) &&
                   in.back() == y.back(),
               "x must be the result's ", describe(y), " but for the last dimension but one, got ", describe(in));
  if (checks.failed()) return checks.error();
  return for_bits(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto element =
        TakeAlong<T>::of(static_cast<const T*>(x.untyped_data()), static_cast<const uint32_t*>(index.untyped_data()),
                         filled<T>(fill.begin(), sizeof(T)), wraps ? uint32_t(in[in.size() - 2]) : 0, in[in.size() - 2],
                         product(in, 0, in.size() - 2), y[y.size() - 2], y.back());
    return to_error(op, gather(device.executor(), element, static_cast<T*>(out->untyped_data()), element.batches,
                               element.items, element.columns));
  });
}

BARACUDA_TARGET(take_along, take_handler,
                operands<2>().Ret<ffi::AnyBuffer>().Attr<Dimensions>("fill").Attr<bool>("wraps"));

}  // namespace
}  // namespace baracuda
