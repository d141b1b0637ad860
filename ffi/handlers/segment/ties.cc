#include "ties.h"

namespace baracuda {

ffi::Error reduce_with_ties(const char* op, bool is_max, Device& device, Reduction& reduction,
                            const ffi::AnyBuffer& data, const ffi::AnyBuffer& workspace, const ffi::AnyBuffer& y,
                            void* ties, int64_t empty_bits) {
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = Ordered<typename decltype(type)::type>;
    SegmentTies<T> reducer{static_cast<T*>(y.untyped_data()), static_cast<float*>(ties), from_bits<T>(empty_bits),
                           extreme<typename decltype(type)::type>(is_max)};
    return reduction.run(op, device, reducer, data, workspace);
  });
}

}  // namespace baracuda
