// The FFI target of cross entropy's gradient: rows [batches..., classes], and a number of each [batches...].
#include "kernels/cross_entropy.h"

#include "handlers/saved.h"
#include "handlers/softmax/rows.h"
#include BARACUDA_DRIVER(blockwise)

namespace baracuda {
namespace {

ffi::Error cross_entropy_backward_call(Device device, Array x, Array index, Array lse, Array rest, Array dnll,
                                       Array dlse, Output dx) {
  const char* op = "cross_entropy_terms_backward";
  Rows shape(op, "x", x, *dx);
  shape.by_row("target", index, x, ffi::DataType::S32);
  const std::pair<const char*, const Array&> wide_ones[] = {
      {"lse", lse}, {"rest", rest}, {"dnll", dnll}, {"dlse", dlse}};
  for (auto& [name, array] : wide_ones) shape.by_row(name, array, x, wide(x.element_type()));
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    CrossEntropyGradient<T> functor{in<T>(x),       in<int32_t>(index), in<Wide>(lse), in<Wide>(rest),
                                    in<Wide>(dnll), in<Wide>(dlse),     out<T>(dx),    shape.columns};
    return to_error(op,
                    run_blockwise(device.executor(), functor, BlockShape(shape.rows, 1, shape.columns, shape.rows)));
  });
}

BARACUDA_TARGET(cross_entropy_terms_backward, cross_entropy_backward_call, operands<6>().Ret<Array>());

}  // namespace
}  // namespace baracuda
