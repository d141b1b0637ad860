// The FFI target of the gradient of the normalization of groups.
#include "handlers/normalization/groups.h"
#include "handlers/normalization/sums.h"

#include BARACUDA_DRIVER(groups_with_sums)

namespace baracuda {
namespace {

ffi::Error group_norm_backward_call(Device device, Array x, Array weight, Array mean, Array r, Array dy,
                                    Output workspace, Output dx, Output dweight, Output dbias) {
  constexpr const char* op = "group_norm_backward";
  NormalizedGroups of(op, x, weight);
  if (of.checks.failed()) return of.checks.error();
  of.like_x("dy", dy, x), of.like_x("dx", *dx, x), of.by_row("mean", mean), of.by_row("r", r);
  of.like("dweight", *dweight, "weight", weight), of.like("dbias", *dbias, "weight", weight);
  if (of.checks.failed()) return of.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    Columns<T> weights(weight);
    GroupGradient<T> functor{in<T>(x), in<T>(dy), out<T>(dx), weights.numbers, in<Wide>(mean), in<Wide>(r), of.shape};
    return to_error(
        op, run_groups_with_sums(device.executor(*workspace), functor, column_sums<T>(dweight), column_sums<T>(dbias)));
  });
}

BARACUDA_TARGET(group_norm_backward, group_norm_backward_call,
                operands<5>().Ret<Array>().Ret<Array>().Ret<Array>().Ret<Array>());

}  // namespace
}  // namespace baracuda
