// FFI targets of sums.
#include "reduce.h"

#include "kernels/reduce/sum.h"

namespace baracuda {

ffi::Error sum(Reducing reducing, Device& device, const Array& workspace, Output& y, double divisor, bool magnitudes) {
  ffi::DataType dtype = reducing.x.element_type();
  if (check_result(reducing).checks.failed()) return reducing.checks.error();
  if (!is_inexact(dtype)) return reduce_integers(reducing, device, workspace, y, Counting::sum);
  return for_inexact(reducing.op, "operand", dtype, [&](auto type) {
    using Reducer = ReduceSum<typename decltype(type)::type>;
    using Bits = typename Reducer::Bits;
    Bits all = Bits(~Bits(0));
    Bits kept = magnitudes ? Bits(all >> 1) : all;  // without the sign
    return reducing.reduce(device, workspace,
                           Reducer{out<typename Reducer::Element>(y), typename Reducer::Real(divisor), kept});
  });
}

namespace {

ffi::Error sum_handler(Device device, Array x, Output workspace, Output y, int64_t rank, double divisor) {
  return sum(Reducing("reduce_sum", "operand", x, "the result", *y, rank), device, *workspace, y, divisor);
}

BARACUDA_TARGET(reduce_sum, sum_handler, reduced().Attr<int64_t>("rank").Attr<double>("divisor"));

}  // namespace
}  // namespace baracuda
