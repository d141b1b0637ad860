// What handlers of normalizations over a batch share: x of shape [batches..., elements, channels, space], and numbers
// of each channel, [batches..., channels].
#pragma once

#include "kernels/batch_normalize.h"

#include "handlers/normalization/normalization.h"

namespace baracuda {
namespace {

struct NormalizedChannels : Normalized {
  BatchShape shape{};

  NormalizedChannels(const char* op, const Array& x, const Array& weight) : Normalized(op, x) {
    auto dims = x.dimensions();
    size_t lead = dims.size() - 3;
    checks.require(dims.size() >= 3, "x must have rank 3 or more, got ", describe(dims));
    if (checks.failed()) return;
    shape = {product(dims, 0, lead), dims[lead], dims[lead + 1], dims[lead + 2]}, rows = shape.rows();
    by_channel("weight", weight);
  }
  // A number of each row, in either dtype.
  void by_channel(const char* name, const Array& array) {
    checks
        .require(int64_t(array.element_count()) == rows, name, " must have ", rows, " elements, got ",
                 describe(array.dimensions()))
        .require(array.element_type() == dtype || array.element_type() == wide(dtype), name,
                 " must have the dtype of x or the one that is computed in, got type ", int(array.element_type()));
  }
};

}  // namespace
}  // namespace baracuda
