// The FFI target of variances and standard deviations.
#include "reduce.h"

#include "kernels/reduce/variance.h"

namespace baracuda {
namespace {

ffi::Error variance_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank,
                            double divisor, bool root) {
  Reducing reducing("reduce_variance", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(more.size() <= 1u + (root && is_rounded(x.element_type())), "expected fewer results, got ",
               more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using Reducer = ReduceVariance<typename decltype(type)::type>;
    using Wide = typename Reducer::Wide;
    Reducer reducer{out<typename Reducer::Element>(y), nullptr, nullptr, Wide(divisor), root};
    if (more.size() > 0) {
      auto mean = saved<Wide>(reducing, more, 0, "mean", wide(x.element_type()));
      if (mean.has_error()) return mean.error();
      reducer.mean = *mean;
    }
    if (more.size() > 1) {
      auto unrounded = saved<Wide>(reducing, more, 1, "wide y", wide(x.element_type()));
      if (unrounded.has_error()) return unrounded.error();
      reducer.wide = *unrounded;
    }
    return reducing.reduce(device, *workspace, reducer);
  });
}

BARACUDA_TARGET(reduce_variance, variance_handler,
                reduced().RemainingRets().Attr<int64_t>("rank").Attr<double>("divisor").Attr<bool>("root"));

}  // namespace
}  // namespace baracuda
