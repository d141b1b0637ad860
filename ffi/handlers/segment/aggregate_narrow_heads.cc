#include "aggregate.h"

namespace baracuda {

ffi::Error reduce_with_narrow_heads(const char* op, Device& device, Reduction& reduction, const ffi::AnyBuffer& data,
                                    const ffi::AnyBuffer& workspace, const ffi::AnyBuffer& y,
                                    const ffi::AnyBuffer& weights) {
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reduction.run(op, device, weighted_sum<T>(y, weights, reduction.index.shape.columns), data, workspace);
  });
}

}  // namespace baracuda
