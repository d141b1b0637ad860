// FFI targets of cumulative maxima and minima.
#include "scan.h"

namespace baracuda {
namespace {

template <bool is_max>
ffi::Error extremum_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                            ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool reverse, bool exclusive) {
  Scanning scanning = Scanning(is_max ? "cummax" : "cummin", "operand", x).same("the result", *y);
  auto* index = second_of<int32_t>(scanning, more, ffi::DataType::S32);
  if (scanning.checks.failed()) return scanning.checks.error();
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
