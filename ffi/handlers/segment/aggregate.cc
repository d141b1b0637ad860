// FFI targets of sums of rows that entries of the index name.
#include "segment.h"

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
  bool wide = data.element_type() == ffi::DataType::F64;
  checks.dtype("weights", weights, wide ? ffi::DataType::F64 : ffi::DataType::F32)
      .require(w.size() == x.size() && std::equal(x.begin(), x.end() - 2, w.begin()) &&
                   w[w.size() - 2] == shape.entries && w.back() >= 1 && shape.columns % w.back() == 0,
               "weights must have the batches of data, ", describe(x), ", ", shape.entries,
               " entries and heads that divide the columns, got ", describe(w));
  if (checks.failed()) return checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SegmentWeightedSum<T> reducer{{static_cast<T*>(y->untyped_data()), T(0)},
                                  static_cast<const Accumulator<T>*>(weights.untyped_data()),
                                  w.back(),
                                  shape.columns / w.back()};
    if (reducer.heads == 1 || reducer.width % segment_columns<T> == 0)
      return reduction.run(op, device, SegmentEvenlyWeightedSum<T>{reducer}, data, *workspace);
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

// The gradient of maxima: of the rows of dy that an entry names, the elements whose arg is the entry.
ffi::Error sum_of_arg_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                              ffi::AnyBuffer sources, ffi::AnyBuffer arg, ffi::Result<ffi::AnyBuffer> workspace,
                              ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "segment_sum_of_arg";
  Reduction reduction(op, data, perm, offsets, *y, sources);
  Checks& checks = reduction.checks;
  checks.same_shape("arg", arg, "data", data)
      .require(arg.element_type() == ffi::DataType::S32 || arg.element_type() == ffi::DataType::U32,
               "arg must be int32 or uint32, got type ", int(arg.element_type()));
  if (checks.failed()) return checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SegmentSumOfArg<T> reducer{{static_cast<T*>(y->untyped_data()), T(0)},
                               static_cast<const uint32_t*>(arg.untyped_data())};
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

BARACUDA_TARGET(segment_weighted_sum, weighted_sum_handler, reduction(operands<5>()));
BARACUDA_TARGET(segment_sum_of_arg, sum_of_arg_handler, reduction(operands<5>()));

}  // namespace
}  // namespace baracuda
