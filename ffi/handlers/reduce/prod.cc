// FFI targets of products.
#include "reduce.h"

#include "kernels/reduce/sum.h"

namespace baracuda {
namespace {

ffi::Error prod_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank) {
  Reducing reducing("reduce_prod", "operand", x, "the result", *y, rank);
  check_result(reducing).checks.require(more.size() == 0 || more.size() == 2, "expected one or three results, got ",
                                        more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  if (!is_inexact(x.element_type())) return reduce_integers(reducing, device, *workspace, y, Counting::prod);
  return for_inexact(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using Reducer = ReduceProd<typename decltype(type)::type>;
    Reducer reducer{out<typename Reducer::Element>(y), nullptr, nullptr};
    if (more.size() == 2) {
      auto product = saved<typename Reducer::Wide>(reducing, more, 0, "product", wide(x.element_type()));
      if (product.has_error()) return product.error();
      auto zeros = saved<uint8_t>(reducing, more, 1, "zeros", ffi::DataType::U8);
      if (zeros.has_error()) return zeros.error();
      reducer.product = *product, reducer.zeros = *zeros;
    }
    return reducing.reduce(device, *workspace, reducer);
  });
}

BARACUDA_TARGET(reduce_prod, prod_handler, reduced().RemainingRets().Attr<int64_t>("rank"));

}  // namespace
}  // namespace baracuda
