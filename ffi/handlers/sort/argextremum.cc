// The FFI target of indices of extrema of arrays [batches..., count, inner].
#include "handlers/target.h"
#include BARACUDA_DRIVER(argextremum)

namespace baracuda {
namespace {

ffi::Error extremum_index_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                                  ffi::Result<ffi::AnyBuffer> index, bool is_max) {
  constexpr const char* op = "argextremum";
  Checks checks(op);
  auto in = x.dimensions(), out = index->dimensions();
  checks.dtype("the result", *index, ffi::DataType::S32)
      .require(in.size() >= 2 && out.size() + 1 == in.size() && std::equal(in.begin(), in.end() - 2, out.begin()) &&
                   in.back() == out.back(),
               "the result must be operand's ", describe(in), " without the last dimension but one, got ",
               describe(out));
  if (checks.failed()) return checks.error();
  int64_t count = in[in.size() - 2];
  checks.require(count > 0 && count <= INT32_MAX, "operand must have 1 to 2^31 - 1 elements along the axis, got ",
                 count);
  if (checks.failed()) return checks.error();
  return for_key(op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    int64_t outer = product(in, 0, in.size() - 2);
    auto* from = static_cast<const T*>(x.untyped_data());
    auto* to = static_cast<int32_t*>(index->untyped_data());
    return to_error(op, argextremum<T>(device.executor(*workspace), from, to, outer, count, in.back(), is_max));
  });
}

BARACUDA_TARGET(argextremum, extremum_index_handler,
                operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<bool>("is_max"));

}  // namespace
}  // namespace baracuda
