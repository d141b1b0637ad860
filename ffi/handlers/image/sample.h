// What the FFI targets of images at positions share: x [batches..., channels, spatial...], positions [batches...,
// points..., axes], or [batches..., axes, points] `by_axis`, in the dtype that x is computed in, y [batches...,
// channels, points...]. A Sampling says which elements are around a position: `run` calls a body with its functor and
// with the type of x.
#pragma once

#include <algorithm>

#include "handlers/target.h"
#include BARACUDA_DRIVER(sample)

namespace baracuda {

class SampledArrays {
 public:
  SampleShape shape{};
  Checks checks;
  const char* op;

  SampledArrays(const char* op, const ffi::AnyBuffer& x, const ffi::AnyBuffer& positions, const ffi::AnyBuffer& y,
                int64_t fewest_axes, bool by_axis)
      : checks(op), op(op), x_(x) {
    auto from = x.dimensions(), at = positions.dimensions(), to = y.dimensions();
    checks.same_dtype("y", y, "x", x)
        .dtype("positions", positions, wide_of(x))
        .require(at.size() >= 1 + size_t(by_axis), "positions must have points and coordinates, got ", describe(at));
    if (checks.failed()) return;
    size_t axis = at.size() - 1 - by_axis;  // that of coordinates
    checks.require(fewest_axes <= at[axis] && at[axis] <= 3, "positions must have ", fewest_axes,
                   " to 3 coordinates, got ", describe(at));
    if (checks.failed()) return;
    axes_ = size_t(at[axis]);
    checks.require(from.size() > axes_, "x must have rank ", axes_ + 1, " or more, got ", describe(from));
    if (checks.failed()) return;
    size_t batches = from.size() - axes_ - 1;
    checks.require(
        (by_axis ? axis == batches : axis >= batches) && std::equal(from.begin(), from.begin() + batches, at.begin()),
        "positions must begin with the batches of x, ", describe(from), ", got ", describe(at));
    if (checks.failed()) return;
    auto points = by_axis ? at.begin() + axis + 1 : at.begin() + batches;
    checks.require(to.size() == at.size() && std::equal(from.begin(), from.begin() + batches + 1, to.begin()) &&
                       std::equal(to.begin() + batches + 1, to.end(), points),
                   "y must have the batches and channels of x, ", describe(from), ", and the points of positions, ",
                   describe(at), ", got ", describe(to));
    shape.batches = product(from, 0, batches), shape.channels = from[batches];
    shape.elements = product(from, batches + 1, from.size()), shape.points = product(to, batches + 1, to.size());
    checks.require(shape.elements < int64_t(1) << 31, "x may have 2^31 - 1 elements in an image, got ", describe(from))
        .require(shape.elements > 0 || is_empty(), "x must have elements, got ", describe(from));
  }
  bool is_empty() const { return shape.batches * shape.points == 0; }

 protected:
  int32_t size(int axis) const {
    auto dims = x_.dimensions();
    return int32_t(dims[dims.size() - axes_ + axis]);
  }

  const ffi::AnyBuffer& x_;
  size_t axes_ = 0;
};

template <class Sampling>
ffi::Error sample_forward(Device device, Sampling& sampling, const ffi::AnyBuffer& x, const ffi::AnyBuffer& positions,
                          ffi::Result<ffi::AnyBuffer>& y) {
  if (sampling.checks.failed()) return sampling.checks.error();
  if (sampling.is_empty() || sampling.shape.channels == 0) return ffi::Error::Success();
  return sampling.run([&](const auto& functor, auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    return to_error(sampling.op,
                    sample(device.executor(), functor, sampling.shape, in<T>(x), in<Sum>(positions), out<T>(y)));
  });
}

template <class Sampling>
ffi::Error sample_tangent_of(Device device, Sampling& sampling, const ffi::AnyBuffer& x,
                             const ffi::AnyBuffer& positions, const ffi::AnyBuffer& dx, const ffi::AnyBuffer& moved,
                             ffi::Result<ffi::AnyBuffer>& dy) {
  sampling.checks.same_shape("the tangent of x", dx, "x", x)
      .same_dtype("the tangent of x", dx, "x", x)
      .same_shape("the tangent of positions", moved, "positions", positions)
      .same_dtype("the tangent of positions", moved, "positions", positions);
  if (sampling.checks.failed()) return sampling.checks.error();
  if (sampling.is_empty() || sampling.shape.channels == 0) return ffi::Error::Success();
  return sampling.run([&](const auto& functor, auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    return to_error(sampling.op, sample_tangent(device.executor(), functor, sampling.shape, in<T>(x),
                                                in<Sum>(positions), in<T>(dx), in<Sum>(moved), out<T>(dy)));
  });
}

template <class Sampling>
ffi::Error sample_backward_of(Device device, Sampling& sampling, const ffi::AnyBuffer& x,
                              const ffi::AnyBuffer& positions, const ffi::AnyBuffer& dy,
                              ffi::Result<ffi::AnyBuffer>& moved) {
  sampling.checks.same_shape("the result", *moved, "positions", positions)
      .same_dtype("the result", *moved, "positions", positions);
  if (sampling.checks.failed()) return sampling.checks.error();
  if (sampling.is_empty()) return ffi::Error::Success();
  return sampling.run([&](const auto& functor, auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    return to_error(sampling.op, sample_backward(device.executor(), functor, sampling.shape, in<T>(x),
                                                 in<Sum>(positions), in<T>(dy), out<Sum>(moved)));
  });
}

}  // namespace baracuda
