// FFI targets of cumulative maxima and minima.
#include "scan.h"

namespace baracuda {
namespace {

// The second result is there when a gradient or the caller needs it.
template <bool is_max>
ffi::Error extremum_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                            ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool reverse, bool exclusive) {
  Scanning scanning = Scanning(is_max ? "cummax" : "cummin", "operand", x).same("the result", *y);
  Checks& checks = scanning.checks;
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  int32_t* index = nullptr;
  if (more.size() == 1) {
    auto second = more.get<ffi::AnyBuffer>(0);
    if (second.has_error()) return second.error();
    scanning.same_shape("the second result", **second);
    checks.dtype("the second result", **second, ffi::DataType::S32);
    if (checks.failed()) return checks.error();
    index = out<int32_t>(*second);
  }
  return for_number(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = Ordered<typename decltype(type)::type>;
    auto order = extreme<typename decltype(type)::type>(is_max);
    if (index) {
      CumArgExtremum<T> functor{};
      functor.x = in<T>(x), functor.y = out<T>(y), functor.index = index, functor.exclusive = exclusive;
      functor.order = order;
      return scanning.run(device, *workspace, functor, reverse, exclusive);
    }
    CumExtremum<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y), functor.order = order;
    return scanning.run(device, *workspace, functor, reverse, exclusive);
  });
}

BARACUDA_TARGET(cummax, extremum_handler<true>,
                scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(cummin, extremum_handler<false>,
                scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));

}  // namespace
}  // namespace baracuda
