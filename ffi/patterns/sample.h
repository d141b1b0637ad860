// The sample pattern: images at positions. Each position has a few elements of an image, the same in all channels,
// whose weighted sum is the result.
//
// A functor has `at(position)`, the indices in an image and the weights; `fill`, the value of what is outside;
// `tangent`, the derivatives of the weights for a tangent of the position; and `backward`, the cotangent of the
// position for those of the weights.
#pragma once

#include "../kernels/sample.h"
#include "executor.h"

namespace baracuda {

// x [batches, channels, elements], positions [batches, points, axes], y [batches, channels, points].
struct SampleShape {
  int64_t batches, channels, elements, points;
};

// What one element of the image gives, or the fill value.
template <class Sum, class T>
BARACUDA_HD Sum sampled(const T* x, int32_t index, Sum fill) {
  return index >= 0 ? Sum(x[index]) : index == no_element ? fill : Sum(0);
}

}  // namespace baracuda
