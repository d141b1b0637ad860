// The FFI target of cross entropy's gradient: rows [batches..., classes], and a number of each [batches...].
#include "kernels/cross_entropy.h"

#include "handlers/saved.h"
#include "handlers/target.h"
#include BARACUDA_DRIVER(blockwise)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;

ffi::Error cross_entropy_backward_call(Device device, Array x, Array index, Array lse, Array rest, Array dnll,
                                       Array dlse, ffi::Result<Array> dx) {
  const char* op = "cross_entropy_terms_backward";
  auto dims = x.dimensions();
  Checks checks(op);
  checks.require(dims.size() >= 1, "x must have rank 1 or more, got ", describe(dims))
      .same_shape("dx", *dx, "x", x)
      .same_dtype("dx", *dx, "x", x)
      .dtype("target", index, ffi::DataType::S32);
  const std::pair<const char*, const Array&> of_rows[] = {
      {"target", index}, {"lse", lse}, {"rest", rest}, {"dnll", dnll}, {"dlse", dlse}};
  for (auto& [name, array] : of_rows) {
    auto got = array.dimensions();
    checks.require(got.size() + 1 == dims.size() && std::equal(got.begin(), got.end(), dims.begin()), name,
                   " must have the shape of x without the last dimension, ", describe(dims), ", got ", describe(got));
    if (&array != &index) checks.dtype(name, array, wide(x.element_type()));
  }
  if (checks.failed()) return checks.error();
  int64_t rows = product(dims, 0, dims.size() - 1), classes = dims.back();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    CrossEntropyGradient<T> functor{in<T>(x),       in<int32_t>(index), in<Wide>(lse), in<Wide>(rest),
                                    in<Wide>(dnll), in<Wide>(dlse),     out<T>(dx),    classes};
    return to_error(op, run_blockwise(device.executor(), functor, BlockShape(rows, 1, classes, rows)));
  });
}

BARACUDA_TARGET(cross_entropy_terms_backward, cross_entropy_backward_call, operands<6>().Ret<Array>());

}  // namespace
}  // namespace baracuda
