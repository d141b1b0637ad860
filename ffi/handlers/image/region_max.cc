// The FFI target of maxima in the bins of boxes: x [batches..., n, channels, height, width], of each box its image
// [batches..., k] and the elements of its bins along both axes, first and after the last, [batches..., k, rows, 2] and
// [batches..., k, columns, 2]; y [batches..., k, channels, rows, columns] and, on request, the index of each maximum in
// its plane, height width where a bin has none.
#include "handlers/target.h"
#include BARACUDA_DRIVER(region_max)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;

RegionShape max_shape(Checks& checks, const Array& x, const Array& image, const Array& rows, const Array& columns,
                      const Array& y) {
  auto from = x.dimensions(), of_image = image.dimensions(), to = y.dimensions();
  checks.require(from.size() >= 4, "x must have rank 4 or more, got ", describe(from))
      .same_dtype("y", y, "x", x)
      .dtype("the images of boxes", image, ffi::DataType::S32)
      .dtype("rows", rows, ffi::DataType::S32)
      .dtype("columns", columns, ffi::DataType::S32);
  if (checks.failed()) return {};
  size_t batches = from.size() - 4;
  checks
      .require(of_image.size() == batches + 1 && std::equal(from.begin(), from.begin() + batches, of_image.begin()),
               "the images of boxes must have the batches of x, ", describe(from), ", got ", describe(of_image))
      .require(to.size() == from.size() && std::equal(of_image.begin(), of_image.end(), to.begin()) &&
                   to[batches + 1] == from[batches + 1],
               "y must have the boxes and the channels of x, ", describe(from), ", got ", describe(to));
  if (checks.failed()) return {};
  auto has = [&](const Array& bounds, int64_t bins) {
    auto dims = bounds.dimensions();
    return dims.size() == of_image.size() + 2 && std::equal(of_image.begin(), of_image.end(), dims.begin()) &&
           dims[dims.size() - 2] == bins && dims.back() == 2;
  };
  constexpr int64_t most = int64_t(1) << 31;
  int64_t height = from[batches + 2], width = from[batches + 3], bins = to[batches + 2] * to[batches + 3];
  checks
      .require(has(rows, to[batches + 2]), "rows must have two numbers for each row of y, ", describe(to), ", got ",
               describe(rows.dimensions()))
      .require(has(columns, to[batches + 3]), "columns must have two numbers for each column of y, ", describe(to),
               ", got ", describe(columns.dimensions()))
      .require(height * width < most, "x may have 2^31 - 1 elements in an image, got ", describe(from))
      .require(bins < most, "y may have 2^31 - 1 elements in a box, got ", describe(to));
  return {product(from, 0, batches), from[batches],        from[batches + 1],
          of_image.back(),           int(height),          int(width),
          int(to[batches + 2]),      int(to[batches + 3]), 1};
}

ffi::Error forward(Device device, Array x, Array image, Array rows, Array columns, ffi::Result<Array> y,
                   ffi::RemainingRets more) {
  constexpr const char* op = "max_regions";
  Checks checks(op);
  RegionShape shape = max_shape(checks, x, image, rows, columns, *y);
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  int32_t* arg = nullptr;
  if (more.size() == 1) {
    auto index = more.get<Array>(0);
    if (index.has_error()) return index.error();
    checks.same_shape("the second result", **index, "the result", *y)
        .dtype("the second result", **index, ffi::DataType::S32);
    if (checks.failed()) return checks.error();
    arg = static_cast<int32_t*>((*index)->untyped_data());
  }
  if (shape.batches * shape.boxes * shape.channels * shape.bins() == 0) return ffi::Error::Success();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    RegionBins work{shape, in<int32_t>(image), in<int32_t>(rows), in<int32_t>(columns)};
    return to_error(op, max_regions<Accumulator<T>>(device.executor(), work, in<T>(x), out<T>(y), arg));
  });
}

BARACUDA_TARGET(max_regions, forward, operands<4>().Ret<Array>().RemainingRets());

}  // namespace
}  // namespace baracuda
