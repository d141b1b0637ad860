// The FFI target of weighted sums of rows that entries of the index name.
#include "aggregate.h"

namespace baracuda {
namespace {

// Weights are [batches..., entries, heads], in what sums are computed in; a head is as many neighboring columns as any
// other.
ffi::Error weighted_sum_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                ffi::AnyBuffer sources, ffi::AnyBuffer weights, ffi::Result<ffi::AnyBuffer> workspace,
                                ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "segment_weighted_sum";
  Reduction reduction(op, data, perm, offsets, *y, sources);
  Checks& checks = reduction.checks;
  if (checks.failed()) return checks.error();
  const SegmentShape& shape = reduction.index.shape;
  auto x = data.dimensions(), w = weights.dimensions();
  checks.dtype("weights", weights, wide_of(data))
      .require(w.size() == x.size() && std::equal(x.begin(), x.end() - 2, w.begin()) &&
                   w[w.size() - 2] == shape.entries && w.back() >= 1 && shape.columns % w.back() == 0,
               "weights must have the batches of data, ", describe(x), ", ", shape.entries,
               " entries and heads that divide the columns, got ", describe(w));
  if (checks.failed()) return checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SegmentWeightedSum<T> reducer = weighted_sum<T>(*y, weights, shape.columns);
    if (reducer.heads > 1 && reducer.width % segment_columns<T> != 0)
      return reduce_with_narrow_heads(op, device, reduction, data, *workspace, *y, weights);
    return reduction.run(op, device, SegmentEvenlyWeightedSum<T>{reducer}, data, *workspace);
  });
}

BARACUDA_TARGET(segment_weighted_sum, weighted_sum_handler, reduction(operands<5>()));

}  // namespace
}  // namespace baracuda
