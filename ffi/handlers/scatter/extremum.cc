// FFI targets of the maxima and minima of rows and of elements that an index names. The second result, which is there
// when a gradient needs it, says which element each is: its number, or -1 for x's own.
#include "scatter.h"

namespace baracuda {
namespace {

template <bool is_max>
ffi::Error extremum_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer index, ffi::AnyBuffer src,
                            ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool wraps) {
  constexpr const char* op = is_max ? "scatter_max" : "scatter_min";
  Checks checks(op);
  check_scattered(checks, x, index, src, *y);
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  int32_t* arg = nullptr;
  if (!checks.failed() && more.size() == 1) {
    auto second = more.get<ffi::AnyBuffer>(0);
    checks.require(second.has_value(), "the second result must be an array");
    if (checks.failed()) return checks.error();
    checks.same_shape("the second result", **second, "x", x).dtype("the second result", **second, ffi::DataType::S32);
    arg = static_cast<int32_t*>((*second)->untyped_data());
  }
  if (checks.failed()) return checks.error();
  return for_number(op, "x", x.element_type(), [&](auto type) {
    using T = Ordered<typename decltype(type)::type>;
    auto order = extreme<typename decltype(type)::type>(is_max);
    auto* from = static_cast<const T*>(x.untyped_data());
    auto* to = static_cast<T*>(y->untyped_data());
    if (more.size() == 1) return combine(op, device, ScatterArgExtremum<T>{order, from, to, arg}, x, index, src, wraps);
    return combine(op, device, ScatterExtremum<T>{order, from, to}, x, index, src, wraps);
  });
}

BARACUDA_TARGET(scatter_max, extremum_handler<true>,
                operands<3>().Ret<ffi::AnyBuffer>().RemainingRets().Attr<bool>("wraps"));
BARACUDA_TARGET(scatter_min, extremum_handler<false>,
                operands<3>().Ret<ffi::AnyBuffer>().RemainingRets().Attr<bool>("wraps"));

}  // namespace
}  // namespace baracuda
