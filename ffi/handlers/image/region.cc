// The FFI targets of regions of images: x [batches..., n, channels, height, width], of each box its image [batches...,
// k] and its frame [batches..., k, 4] in the dtype that x is computed in, y [batches..., k, channels, rows, columns].
// Then the tangent of y, and the cotangent of the frames for each bin, [batches..., k, rows, columns, 4]. The cotangent
// of x is a sum of weighted rows, which `segment_weighted_sum` forms.
#include "handlers/target.h"
#include BARACUDA_DRIVER(region)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

RegionShape region_shape(Checks& checks, const Array& x, const Array& image, const Array& frames, const Array& y,
                         int64_t samples) {
  auto from = x.dimensions(), of_image = image.dimensions(), of_frames = frames.dimensions(), to = y.dimensions();
  checks.require(from.size() >= 4, "x must have rank 4 or more, got ", describe(from))
      .same_dtype("y", y, "x", x)
      .dtype("the images of boxes", image, ffi::DataType::S32)
      .dtype("frames", frames, wide_of(x))
      .require(1 <= samples && samples < 1 << 15, "samples must be 1 to 32767, got ", samples);
  if (checks.failed()) return {};
  size_t batches = from.size() - 4;
  auto begins = [&](Dimensions dims) { return std::equal(from.begin(), from.begin() + batches, dims.begin()); };
  checks
      .require(of_image.size() == batches + 1 && begins(of_image), "the images of boxes must have the batches of x, ",
               describe(from), ", got ", describe(of_image))
      .require(of_frames.size() == batches + 2 && std::equal(of_image.begin(), of_image.end(), of_frames.begin()) &&
                   of_frames.back() == 4,
               "frames must be four numbers for each box, got ", describe(of_frames))
      .require(to.size() == from.size() && std::equal(of_image.begin(), of_image.end(), to.begin()) &&
                   to[batches + 1] == from[batches + 1],
               "y must have the boxes and the channels of x, ", describe(from), ", got ", describe(to));
  if (checks.failed()) return {};
  constexpr int64_t most = int64_t(1) << 31;
  int64_t height = from[batches + 2], width = from[batches + 3], rows = to[batches + 2], columns = to[batches + 3];
  checks.require(height * width < most, "x may have 2^31 - 1 elements in an image, got ", describe(from))
      .require(rows * columns < most, "y may have 2^31 - 1 elements in a box, got ", describe(to))
      .require(height * width > 0 || product(of_image, 0, of_image.size()) == 0, "x must have elements, got ",
               describe(from));
  return {product(from, 0, batches),
          from[batches],
          from[batches + 1],
          of_image.back(),
          int(height),
          int(width),
          int(rows),
          int(columns),
          int(samples)};
}

bool has_boxes(const RegionShape& shape) { return shape.batches * shape.boxes * shape.bins() > 0; }

ffi::Error forward(Device device, Array x, Array image, Array frames, Output y, int64_t samples) {
  constexpr const char* op = "sample_regions";
  Checks checks(op);
  RegionShape shape = region_shape(checks, x, image, frames, *y, samples);
  if (checks.failed()) return checks.error();
  if (!has_boxes(shape) || shape.channels == 0) return ffi::Error::Success();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    const RegionTangent<T, Sum>* none = nullptr;
    Regions<Sum> work{shape, in<int32_t>(image), in<Sum>(frames)};
    return to_error(op, sample_regions(device.executor(), work, in<T>(x), none, out<T>(y)));
  });
}

ffi::Error tangent(Device device, Array x, Array image, Array frames, Array dx, Array moved, Output dy,
                   int64_t samples) {
  constexpr const char* op = "sample_regions_tangent";
  Checks checks(op);
  RegionShape shape = region_shape(checks, x, image, frames, *dy, samples);
  checks.same_shape("the tangent of x", dx, "x", x)
      .same_dtype("the tangent of x", dx, "x", x)
      .same_shape("the tangent of frames", moved, "frames", frames)
      .same_dtype("the tangent of frames", moved, "frames", frames);
  if (checks.failed()) return checks.error();
  if (!has_boxes(shape) || shape.channels == 0) return ffi::Error::Success();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    RegionTangent<T, Sum> of{in<T>(dx), in<Sum>(moved)};
    Regions<Sum> work{shape, in<int32_t>(image), in<Sum>(frames)};
    return to_error(op, sample_regions(device.executor(), work, in<T>(x), &of, out<T>(dy)));
  });
}

ffi::Error backward(Device device, Array x, Array image, Array frames, Array dy, Output moved, int64_t samples) {
  constexpr const char* op = "sample_regions_backward";
  Checks checks(op);
  RegionShape shape = region_shape(checks, x, image, frames, dy, samples);
  checks.same_dtype("the result", *moved, "frames", frames);
  if (checks.failed()) return checks.error();
  auto dims = moved->dimensions(), of_image = image.dimensions();
  checks.require(dims.size() == of_image.size() + 3 && std::equal(of_image.begin(), of_image.end(), dims.begin()) &&
                     dims[of_image.size()] == shape.rows && dims[of_image.size() + 1] == shape.columns &&
                     dims.back() == 4,
                 "the result must have four numbers for each bin, got ", describe(dims));
  if (checks.failed()) return checks.error();
  if (!has_boxes(shape)) return ffi::Error::Success();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    Regions<Sum> work{shape, in<int32_t>(image), in<Sum>(frames)};
    return to_error(op, region_cotangents(device.executor(), work, in<T>(x), in<T>(dy), out<Sum>(moved)));
  });
}

BARACUDA_TARGET(sample_regions, forward, operands<3>().Ret<Array>().Attr<int64_t>("samples"));
BARACUDA_TARGET(sample_regions_tangent, tangent, operands<5>().Ret<Array>().Attr<int64_t>("samples"));
BARACUDA_TARGET(sample_regions_backward, backward, operands<4>().Ret<Array>().Attr<int64_t>("samples"));

}  // namespace
}  // namespace baracuda
