// FFI targets of other reductions of rows that entries of the index name.
#include "segment.h"

namespace baracuda {
namespace {

// Of the rows that entries name, of those that name any.
ffi::Error mean_of_sources_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                   ffi::AnyBuffer sources, ffi::Result<ffi::AnyBuffer> workspace,
                                   ffi::Result<ffi::AnyBuffer> y, int64_t empty_bits) {
  constexpr const char* op = "segment_mean_of_sources";
  Reduction reduction(op, data, perm, offsets, *y, sources);
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SegmentMeanOfSources<T> mean{{static_cast<T*>(y->untyped_data()), from_bits<T>(empty_bits)}};
    return reduction.run(op, device, mean, data, *workspace);
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

BARACUDA_TARGET(segment_mean_of_sources, mean_of_sources_handler, reduction(operands<4>()).Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_sum_of_arg, sum_of_arg_handler, reduction(operands<5>()));

}  // namespace
}  // namespace baracuda
