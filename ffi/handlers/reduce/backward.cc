// FFI targets of gradients of reductions.
#include "reduce.h"

#include "kernels/reduce/backward.h"

namespace baracuda {
namespace {

ffi::Error sum_backward_handler(Device device, Array dy, Output dx, int64_t rank, double divisor) {
  Reducing reducing("reduce_sum_backward", "the result", *dx, "dy", dy, rank);
  reducing.checks.same_dtype("the result", *dx, "dy", dy);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_inexact(reducing.op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.broadcast(device, BroadcastSum<T>{in<T>(dy), divisor}, *dx, dx);
  });
}

// The checks of a gradient that reads x.
Reducing gradient(const char* op, const Array& x, const Array& dy, Output& dx, int64_t rank) {
  Reducing reducing(op, "operand", x, "dy", dy, rank);
  reducing.checks.same_dtype("dy", dy, "operand", x)
      .same_shape("the result", *dx, "operand", x)
      .same_dtype("the result", *dx, "operand", x);
  return reducing;
}

ffi::Error extremum_backward_handler(Device device, Array x, Array y, Array ties, Array dy, Output dx, int64_t rank,
                                     bool magnitude) {
  Reducing reducing = gradient("reduce_extremum_backward", x, dy, dx, rank).per_slice("y", y).per_slice("ties", ties);
  reducing.checks.same_dtype("y", y, "operand", x).dtype("ties", ties, ffi::DataType::F32);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.broadcast(device, BroadcastExtremum<T>{in<T>(y), in<float>(ties), in<T>(dy), magnitude}, x, dx);
  });
}

ffi::Error prod_backward_handler(Device device, Array x, Array product, Array zeros, Array dy, Output dx,
                                 int64_t rank) {
  Reducing reducing =
      gradient("reduce_prod_backward", x, dy, dx, rank).per_slice("product", product).per_slice("zeros", zeros);
  reducing.checks.dtype("product", product, wide(x.element_type())).dtype("zeros", zeros, ffi::DataType::U8);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_inexact(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Broadcaster = BroadcastProd<T>;
    return reducing.broadcast(
        device, Broadcaster{in<typename Broadcaster::Wide>(product), in<uint8_t>(zeros), in<T>(dy)}, x, dx);
  });
}

ffi::Error log_sum_exp_backward_handler(Device device, Array x, Array y, Array rest, Array dy, Output dx,
                                        int64_t rank) {
  Reducing reducing = gradient("reduce_logsumexp_backward", x, dy, dx, rank).per_slice("y", y).per_slice("rest", rest);
  reducing.checks.same_dtype("y", y, "operand", x).dtype("rest", rest, wide(x.element_type()));
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.broadcast(device, BroadcastLogSumExp<T>{in<T>(y), in<Comparable<T>>(rest), in<T>(dy)}, x, dx);
  });
}

ffi::Error norm_backward_handler(Device device, Array x, Array y, Array dy, Output dx, int64_t rank, double p) {
  Reducing reducing = gradient("reduce_norm_backward", x, dy, dx, rank).per_slice("y", y);
  reducing.checks.dtype("y", y, wide(x.element_type()));
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.broadcast(device, BroadcastNorm<T>{in<Comparable<T>>(y), in<T>(dy), p}, x, dx);
  });
}

ffi::Error variance_backward_handler(Device device, Array x, Array y, Array mean, Array dy, Output dx, int64_t rank,
                                     double divisor, bool root) {
  Reducing reducing = gradient("reduce_variance_backward", x, dy, dx, rank).per_slice("y", y).per_slice("mean", mean);
  ffi::DataType dtype = x.element_type();
  reducing.checks.dtype("y", y, root ? wide(dtype) : dtype).dtype("mean", mean, wide(dtype));
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return reducing.broadcast(device, BroadcastVariance<T>{in<Wide>(mean), in<Wide>(y), in<T>(dy), Wide(divisor), root},
                              x, dx);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Targets

template <int count>
auto broadcast() {
  return operands<count>().template Ret<Array>().template Attr<int64_t>("rank");
}

BARACUDA_TARGET(reduce_sum_backward, sum_backward_handler, broadcast<1>().Attr<double>("divisor"));
BARACUDA_TARGET(reduce_prod_backward, prod_backward_handler, broadcast<4>());
BARACUDA_TARGET(reduce_extremum_backward, extremum_backward_handler, broadcast<4>().Attr<bool>("magnitude"));
BARACUDA_TARGET(reduce_logsumexp_backward, log_sum_exp_backward_handler, broadcast<4>());
BARACUDA_TARGET(reduce_norm_backward, norm_backward_handler, broadcast<3>().Attr<double>("p"));
BARACUDA_TARGET(reduce_variance_backward, variance_backward_handler,
                broadcast<4>().Attr<double>("divisor").Attr<bool>("root"));

}  // namespace
}  // namespace baracuda
