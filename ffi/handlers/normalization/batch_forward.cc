// The FFI target of the normalization over a batch.
#include "handlers/normalization/batch.h"

#include BARACUDA_DRIVER(channels)

namespace baracuda {
namespace {

ffi::Error batch_norm_call(Device device, Array x, Array weight, Array bias, Output workspace, Output y, Output mean,
                           Output variance, double eps) {
  constexpr const char* op = "batch_norm";
  NormalizedChannels of(op, x, weight);
  if (of.checks.failed()) return of.checks.error();
  of.like_x("y", *y, x), of.like("bias", bias, "weight", weight);
  of.by_row("mean", *mean), of.by_row("variance", *variance);
  if (of.checks.failed()) return of.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    Columns<T> weights(weight), biases(bias);
    BatchNormalize<T> functor{in<T>(x),        out<T>(y),           weights.numbers, biases.numbers,
                              out<Wide>(mean), out<Wide>(variance), Wide(eps),       of.shape};
    return to_error(op, run_channels(device.executor(*workspace), functor));
  });
}

BARACUDA_TARGET(batch_norm, batch_norm_call,
                operands<3>().Ret<Array>().Ret<Array>().Ret<Array>().Ret<Array>().Attr<double>("eps"));

}  // namespace
}  // namespace baracuda
