// FFI targets that find the positions of elements of [batches..., elements], as many as the result has room for.
#include "target.h"
#include BARACUDA_DRIVER(compact)

namespace baracuda {
namespace {

// predicate(type) makes one. After the last index comes `fill`, or, where that is null, the number of elements.
template <class Predicate>
ffi::Error compact(const char* op, Device& device, const ffi::AnyBuffer& x, const ffi::AnyBuffer& workspace,
                   const ffi::AnyBuffer& index, const ffi::AnyBuffer& found, const Predicate& predicate,
                   const int64_t* fill) {
  auto dims = x.dimensions(), positions = index.dimensions(), rows = found.dimensions();
  Checks checks(op);
  checks.require(dims.size() >= 1, "the operand must have rank 1 or more, got ", describe(dims))
      .dtype("the first result", index, ffi::DataType::S32)
      .dtype("the second result", found, ffi::DataType::S32);
  if (checks.failed()) return checks.error();
  checks
      .require(positions.size() == dims.size() && std::equal(dims.begin(), dims.end() - 1, positions.begin()),
               "the first result must be the batches of the operand by positions, of ", describe(dims), ", got ",
               describe(positions))
      .require(rows.size() + 1 == dims.size() && std::equal(rows.begin(), rows.end(), dims.begin()),
               "the second result must have the batches of the operand, of ", describe(dims), ", got ", describe(rows))
      .require(dims.back() <= std::numeric_limits<int32_t>::max(),
               "the operand may have at most 2^31 - 1 elements, got ", dims.back());
  if (checks.failed()) return checks.error();
  CompactShape shape{product(rows, 0, rows.size()), dims.back(), positions.back(), int32_t(fill ? *fill : dims.back())};
  return for_key(op, "the operand", x.element_type(), [&](auto type) {
    using Key = typename SortKey<typename decltype(type)::type>::Key;
    return to_error(
        op,
        compact_rows(device.executor(workspace), predicate(type), static_cast<const Key*>(x.untyped_data()),
                     static_cast<int32_t*>(index.untyped_data()), static_cast<int32_t*>(found.untyped_data()), shape));
  });
}

ffi::Error elements_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                            ffi::Result<ffi::AnyBuffer> index, ffi::Result<ffi::AnyBuffer> found, int64_t fill) {
  auto predicate = [](auto type) { return NonZero<typename decltype(type)::type>{}; };
  return compact("nonzero", device, x, *workspace, *index, *found, predicate, &fill);
}

ffi::Error starts_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                          ffi::Result<ffi::AnyBuffer> index, ffi::Result<ffi::AnyBuffer> found, bool equal_nan) {
  auto predicate = [&](auto type) { return RunStart<typename decltype(type)::type>{equal_nan}; };
  return compact("run_starts", device, x, *workspace, *index, *found, predicate, nullptr);
}

// The workspace, the positions, and how many there are.
auto compacted() { return operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>(); }

BARACUDA_TARGET(nonzero, elements_handler, compacted().Attr<int64_t>("fill"));
BARACUDA_TARGET(run_starts, starts_handler, compacted().Attr<bool>("equal_nan"));

}  // namespace
}  // namespace baracuda
