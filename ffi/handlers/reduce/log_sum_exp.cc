// The FFI target of logarithms of sums of exponentials.
#include "reduce.h"

#include "kernels/reduce/log_sum_exp.h"

namespace baracuda {
namespace {

ffi::Error log_sum_exp_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more,
                               int64_t rank) {
  Reducing reducing("reduce_logsumexp", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using T = typename decltype(type)::type;
    auto rest = saved_wide<T>(reducing, more, "rest");
    if (rest.has_error()) return rest.error();
    return reducing.reduce(device, *workspace, ReduceLogSumExp<T>{out<T>(y), *rest});
  });
}

BARACUDA_TARGET(reduce_logsumexp, log_sum_exp_handler, reduced().RemainingRets().Attr<int64_t>("rank"));

}  // namespace
}  // namespace baracuda
