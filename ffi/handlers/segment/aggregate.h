// Weighted sums of segments. Those whose columns that are read together have several weights are compiled apart.
#pragma once

#include "segment.h"

namespace baracuda {

template <class T>
SegmentWeightedSum<T> weighted_sum(const ffi::AnyBuffer& y, const ffi::AnyBuffer& weights, int64_t columns) {
  int64_t heads = weights.dimensions().back();
  return {{static_cast<T*>(y.untyped_data()), T(0)}, in<Accumulator<T>>(weights), heads, columns / heads};
}

ffi::Error reduce_with_narrow_heads(const char* op, Device& device, Reduction& reduction, const ffi::AnyBuffer& data,
                                    const ffi::AnyBuffer& workspace, const ffi::AnyBuffer& y,
                                    const ffi::AnyBuffer& weights);

}  // namespace baracuda
