// The FFI target of the index of segments.
#include "segment.h"

namespace baracuda {
namespace {

ffi::Error index_handler(Device device, ffi::AnyBuffer ids, ffi::Result<ffi::AnyBuffer> workspace,
                         ffi::Result<ffi::AnyBuffer> perm, ffi::Result<ffi::AnyBuffer> offsets, bool sorted) {
  constexpr const char* op = "segment_index";
  Checks checks(op);
  auto in = ids.dimensions(), order = perm->dimensions(), out = offsets->dimensions();
  checks.require(in.size() >= 1, "ids must have rank 1 or more, got ", describe(in))
      .dtype("perm", *perm, ffi::DataType::U32)
      .dtype("offsets", *offsets, ffi::DataType::U32);
  if (checks.failed()) return checks.error();
  checks
      .require(order.size() == in.size() && std::equal(in.begin(), in.end() - 1, order.begin()) &&
                   order.back() == (sorted ? 0 : in.back()),
               "perm must have the shape of ids, ", describe(in), ", or no column for sorted ids, got ",
               describe(order))
      .require(out.size() == in.size() && std::equal(in.begin(), in.end() - 1, out.begin()) && out.back() >= 1,
               "offsets must be ", describe(in), " with segments + 1 in the last position, got ", describe(out))
      .require(in.back() < int64_t(no_row), "at most 2^32 - 2 rows are supported, got ", in.back());
  if (checks.failed()) return checks.error();
  return for_index(op, "ids", ids.element_type(), [&](auto id) {
    using Id = typename decltype(id)::type;
    uint32_t* to = sorted ? nullptr : static_cast<uint32_t*>(perm->untyped_data());
    return to_error(op, index_segments(device.executor(*workspace), static_cast<const Id*>(ids.untyped_data()),
                                       product(in, 0, in.size() - 1), in.back(), out.back() - 1, to,
                                       static_cast<uint32_t*>(offsets->untyped_data())));
  });
}

BARACUDA_TARGET(segment_index, index_handler, reduction(operands<1>()).Ret<ffi::AnyBuffer>().Attr<bool>("sorted"));

}  // namespace
}  // namespace baracuda
