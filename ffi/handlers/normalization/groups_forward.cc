// The FFI target of the normalization of groups. What is saved of a row, its mean and r, has the shape [batch...,
// groups].
#include "handlers/normalization/groups.h"

#include BARACUDA_DRIVER(groups)

namespace baracuda {
namespace {

ffi::Error group_norm_call(Device device, Array x, Array weight, Array bias, Output workspace, Output y,
                           ffi::RemainingRets saved, double eps) {
  constexpr const char* op = "group_norm";
  NormalizedGroups of(op, x, weight);
  if (of.checks.failed()) return of.checks.error();
  of.like_x("y", *y, x), of.like("bias", bias, "weight", weight);
  of.checks.require(saved.size() == 0 || saved.size() == 2, "there must be no results of rows or 2, got ",
                    int64_t(saved.size()));
  void* results[2]{};
  for (size_t i = 0; i < saved.size() && !of.checks.failed(); ++i) {
    auto array = saved.get<ffi::AnyBuffer>(i);
    of.checks.require(array.has_value(), "the results of rows must be arrays");
    if (of.checks.failed()) break;
    of.by_row(i == 0 ? "mean" : "r", **array);
    results[i] = (*array)->untyped_data();
  }
  if (of.checks.failed()) return of.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    Columns<T> weights(weight), biases(bias);
    GroupNormalize<T> functor{in<T>(x),
                              out<T>(y),
                              weights.numbers,
                              biases.numbers,
                              static_cast<Wide*>(results[0]),
                              static_cast<Wide*>(results[1]),
                              Wide(eps),
                              of.shape};
    return to_error(op, run_groups(device.executor(*workspace), functor));
  });
}

BARACUDA_TARGET(group_norm, group_norm_call,
                operands<3>().Ret<Array>().Ret<Array>().RemainingRets().Attr<double>("eps"));

}  // namespace
}  // namespace baracuda
