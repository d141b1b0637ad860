// FFI targets of maxima and minima of segments.
#include "ties.h"

namespace baracuda {
namespace {

// The second result is there when a gradient or the caller needs it: integers are the winning rows, floats the numbers
// of rows that tie.
template <bool is_max>
ffi::Error extremum_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                            ffi::RemainingArgs sources, ffi::Result<ffi::AnyBuffer> workspace,
                            ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, int64_t empty_bits) {
  constexpr const char* op = is_max ? "segment_max" : "segment_min";
  Reduction reduction(op, data, perm, offsets, *y, optional_operand(sources));
  Checks& checks = reduction.checks;
  checks.require(sources.size() <= 1, "expected three or four operands, got ", sources.size() + 3);
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  void* second = nullptr;
  bool ties = false;
  if (more.size() == 1) {
    auto rows = more.get<ffi::AnyBuffer>(0);
    if (rows.has_error()) return rows.error();
    ffi::DataType type = (*rows)->element_type();
    ties = type == ffi::DataType::F32;
    checks.same_shape("the second result", **rows, "the result", *y)
        .require(ties || type == ffi::DataType::S32 || type == ffi::DataType::U32,
                 "the second result must be int32 or uint32 for winning rows, float32 for ties, got type ", int(type));
    if (checks.failed()) return checks.error();
    second = (*rows)->untyped_data();
  }
  if (ties) return reduce_with_ties(op, is_max, device, reduction, data, *workspace, *y, second, empty_bits);
  if (!second) return reduce_values(op, is_max, device, reduction, data, *workspace, *y, empty_bits);
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = Ordered<typename decltype(type)::type>;
    auto order = extreme<typename decltype(type)::type>(is_max);
    T *to = static_cast<T*>(y->untyped_data()), empty = from_bits<T>(empty_bits);
    SegmentExtremum<T> reducer{to, static_cast<uint32_t*>(second), empty, uint32_t(reduction.index.shape.entries),
                               order};
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

BARACUDA_TARGET(segment_max, extremum_handler<true>,
                reduction(operands<3>().RemainingArgs()).RemainingRets().Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_min, extremum_handler<false>,
                reduction(operands<3>().RemainingArgs()).RemainingRets().Attr<int64_t>("empty_bits"));

}  // namespace
}  // namespace baracuda
