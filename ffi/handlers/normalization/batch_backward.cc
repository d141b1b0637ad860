// The FFI target of the gradient of the normalization over a batch.
#include "handlers/normalization/batch.h"
#include "handlers/normalization/sums.h"

#include BARACUDA_DRIVER(channels)

namespace baracuda {
namespace {

ffi::Error batch_norm_backward_call(Device device, Array x, Array weight, Array mean, Array variance, Array dy,
                                    Output workspace, Output dx, Output dweight, Output dbias, double eps) {
  constexpr const char* op = "batch_norm_backward";
  NormalizedChannels of(op, x, weight);
  if (of.checks.failed()) return of.checks.error();
  of.like_x("dy", dy, x), of.like_x("dx", *dx, x), of.by_row("mean", mean), of.by_row("variance", variance);
  of.like("dweight", *dweight, "weight", weight), of.like("dbias", *dbias, "weight", weight);
  if (of.checks.failed()) return of.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    Columns<T> weights(weight);
    BatchGradient<T, ColumnSums<T>> functor{in<T>(x),
                                            in<T>(dy),
                                            out<T>(dx),
                                            weights.numbers,
                                            in<Wide>(mean),
                                            in<Wide>(variance),
                                            column_sums<T>(dweight),
                                            column_sums<T>(dbias),
                                            Wide(eps),
                                            of.shape};
    return to_error(op, run_channels(device.executor(*workspace), functor));
  });
}

BARACUDA_TARGET(batch_norm_backward, batch_norm_backward_call,
                operands<5>().Ret<Array>().Ret<Array>().Ret<Array>().Ret<Array>().Attr<double>("eps"));

}  // namespace
}  // namespace baracuda
