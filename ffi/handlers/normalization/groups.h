// What handlers of normalizations of groups share: x of shape [batch..., groups, channels, space], and parameters
// [some of the batch..., groups, channels], each of which serves neighboring elements of the batch.
#pragma once

#include "kernels/group_normalize.h"

#include "handlers/normalization/normalization.h"

namespace baracuda {
namespace {

struct NormalizedGroups : Normalized {
  GroupShape shape{};

  NormalizedGroups(const char* op, const Array& x, const Array& weight) : Normalized(op, x) {
    auto dims = x.dimensions(), of_weight = weight.dimensions();
    size_t lead = dims.size() - 3;
    checks.require(dims.size() >= 3, "x must have rank 3 or more, got ", describe(dims));
    if (checks.failed()) return;
    shape = {product(dims, 0, lead), 0, dims[lead], dims[lead + 1], dims[lead + 2]};
    int64_t count = of_weight.size() < 2 ? 0 : product(of_weight, 0, of_weight.size() - 2);
    checks
        .require(count > 0 && shape.batch % count == 0 && of_weight[of_weight.size() - 2] == shape.groups &&
                     of_weight.back() == shape.channels,
                 "weight must have shape [parts of the batch..., ", shape.groups, ", ", shape.channels, "], got ",
                 describe(of_weight))
        .require(weight.element_type() == dtype || weight.element_type() == wide(dtype),
                 "weight must have the dtype of x or the one that is computed in, got type ",
                 int(weight.element_type()));
    if (!checks.failed()) shape.of_weight = shape.batch / count, rows = shape.rows();
  }
};

}  // namespace
}  // namespace baracuda
