#include "ties.h"

namespace baracuda {

ffi::Error reduce_values(const char* op, bool is_max, Device& device, Reduction& reduction, const ffi::AnyBuffer& data,
                         const ffi::AnyBuffer& workspace, const ffi::AnyBuffer& y, int64_t empty_bits) {
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = Ordered<typename decltype(type)::type>;
    SegmentExtremumValue<T> reducer{static_cast<T*>(y.untyped_data()), from_bits<T>(empty_bits),
                                    extreme<typename decltype(type)::type>(is_max)};
    return reduction.run(op, device, reducer, data, workspace);
  });
}

}  // namespace baracuda
