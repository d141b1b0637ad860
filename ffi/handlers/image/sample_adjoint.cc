// The FFI target of the cotangent of images that are read at positions: dy [batches..., channels, points], the index of
// the elements that entries [batches..., entries] read and their weights, in what sums are computed in, give
// dx [batches..., channels, elements].
#include <algorithm>

#include "handlers/target.h"
#include BARACUDA_DRIVER(sample_adjoint)

namespace baracuda {
namespace {

ffi::Error adjoint(Device device, ffi::AnyBuffer dy, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                   ffi::AnyBuffer weights, ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "sample_adjoint";
  Checks checks(op);
  auto from = dy.dimensions(), order = perm.dimensions(), begins = offsets.dimensions(), to = dx->dimensions();
  bool is_wide = dy.element_type() == ffi::DataType::F64;
  checks.same_dtype("dx", *dx, "dy", dy)
      .dtype("perm", perm, ffi::DataType::U32)
      .dtype("offsets", offsets, ffi::DataType::U32)
      .dtype("weights", weights, is_wide ? ffi::DataType::F64 : ffi::DataType::F32)
      .require(weights.dimensions() == order, "weights must have the shape of perm, ", describe(order), ", got ",
               describe(weights.dimensions()))
      .require(from.size() >= 2, "dy must have channels and points, got ", describe(from));
  if (checks.failed()) return checks.error();
  size_t batches = from.size() - 2;
  auto has_batches = [&](const auto& dims) {
    return dims.size() > batches && std::equal(from.begin(), from.begin() + batches, dims.begin());
  };
  checks
      .require(has_batches(order) && order.size() == batches + 1, "perm must have the batches of dy, ", describe(from),
               ", and entries, got ", describe(order))
      .require(has_batches(to) && to.size() == batches + 2 && to[batches] == from[batches],
               "dx must have the batches and channels of dy, ", describe(from), ", and elements, got ", describe(to));
  if (checks.failed()) return checks.error();
  SampleAdjointShape shape{product(from, 0, batches), from[batches], from.back(), to.back(), order.back()};
  checks
      .require(has_batches(begins) && begins.size() == batches + 1 && begins.back() == shape.elements + 1,
               "offsets must have the batches of dy, ", describe(from), ", and a column more than there are elements, ",
               shape.elements, ", got ", describe(begins))
      .require(shape.points == 0 ? shape.entries == 0 : shape.entries % shape.points == 0,
               "perm must have whole runs of ", shape.points, " points, got ", shape.entries, " entries")
      .require(shape.entries < (int64_t(1) << 32) - (1 << 16), "at most 2^32 - 2^16 entries are supported, got ",
               shape.entries);
  if (checks.failed()) return checks.error();
  if (shape.batches * shape.channels * shape.elements == 0) return ffi::Error::Success();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    auto run = [&](auto index) {
      using Index = decltype(index);
      SampleEntries<Sum, Index> entries{in<uint32_t>(perm), in<uint32_t>(offsets), in<Sum>(weights),
                                        Divisor<Index>(std::max<int64_t>(shape.points, 1))};
      return to_error(op, sample_adjoint(device.executor(*workspace), shape, entries, in<T>(dy), out<T>(dx)));
    };
    return shape.entries < int64_t(1) << 31 ? run(int32_t()) : run(int64_t());
  });
}

BARACUDA_TARGET(sample_adjoint, adjoint, operands<4>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
