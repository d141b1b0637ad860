// What the FFI targets of images at positions share: x [batches..., channels, spatial...], positions [batches...,
// points..., axes] in the dtype that x is computed in, y [batches..., channels, points...]; `taps` along each axis, how
// what is outside is read, and whether the grid's -1 and 1 are the centers of the outermost elements.
#pragma once

#include <algorithm>

#include "handlers/target.h"
#include BARACUDA_DRIVER(sample)

namespace baracuda {

struct SampleAttributes {
  int64_t taps, padding;
  bool align_corners;
};

class Sampling {
 public:
  SampleShape shape{};
  Checks checks;

  Sampling(const char* op, const ffi::AnyBuffer& x, const ffi::AnyBuffer& positions, const ffi::AnyBuffer& y,
           const SampleAttributes& attributes)
      : checks(op), x_(x), attributes_(attributes), op_(op) {
    auto from = x.dimensions(), at = positions.dimensions(), to = y.dimensions();
    bool is_wide = x.element_type() == ffi::DataType::F64;
    checks.same_dtype("y", y, "x", x)
        .dtype("positions", positions, is_wide ? ffi::DataType::F64 : ffi::DataType::F32)
        .require(at.size() >= 1 && (at.back() == 2 || at.back() == 3), "positions must have 2 or 3 coordinates, got ",
                 describe(at))
        .require(attributes.taps == 1 || attributes.taps == 2 || (attributes.taps == 4 && at.back() == 2),
                 "taps must be 1 or 2, or 4 of 2 coordinates, got ", attributes.taps)
        .require(0 <= attributes.padding && attributes.padding <= 2, "padding must be 0, 1 or 2, got ",
                 attributes.padding);
    if (checks.failed()) return;
    axes_ = size_t(at.back());
    checks.require(from.size() > axes_, "x must have rank ", axes_ + 1, " or more, got ", describe(from));
    if (checks.failed()) return;
    size_t batches = from.size() - axes_ - 1;
    checks.require(at.size() > batches && std::equal(from.begin(), from.begin() + batches, at.begin()),
                   "positions must begin with the batches of x, ", describe(from), ", got ", describe(at));
    if (checks.failed()) return;
    checks.require(to.size() == at.size() && std::equal(from.begin(), from.begin() + batches + 1, to.begin()) &&
                       std::equal(at.begin() + batches, at.end() - 1, to.begin() + batches + 1),
                   "y must have the batches and channels of x, ", describe(from), ", and the points of positions, ",
                   describe(at), ", got ", describe(to));
    shape.batches = product(from, 0, batches), shape.channels = from[batches];
    shape.elements = product(from, batches + 1, from.size()), shape.points = product(at, batches, at.size() - 1);
    checks.require(shape.elements < int64_t(1) << 31, "x may have 2^31 - 1 elements in an image, got ", describe(from))
        .require(shape.elements > 0 || is_empty(), "x must have elements, got ", describe(from));
  }
  bool is_empty() const { return shape.batches * shape.points == 0; }

  // Calls body(functor, type) for the functor of the axes and the taps, and the type of x.
  template <class Body>
  ffi::Error run(const Body& body) const {
    return for_float(op_, "x", x_.element_type(), [&](auto type) {
      using Sum = Accumulator<typename decltype(type)::type>;
      auto with = [&](auto taps, auto axes) { return body(functor<Sum, taps.value, axes.value>(), type); };
      constexpr std::integral_constant<int, 1> one;
      constexpr std::integral_constant<int, 2> two;
      if (axes_ == 3) {
        constexpr std::integral_constant<int, 3> three;
        return attributes_.taps == 1 ? with(one, three) : with(two, three);
      }
      if (attributes_.taps == 4) return with(std::integral_constant<int, 4>(), two);
      return attributes_.taps == 1 ? with(one, two) : with(two, two);
    });
  }

 private:
  template <class Sum, int K, int rank>
  GridSample<Sum, K, rank> functor() const {
    GridSample<Sum, K, rank> found;
    auto dims = x_.dimensions();
    for (int a = 0; a < rank; ++a)
      found.axis[a] = {int32_t(dims[dims.size() - rank + a]), SamplePadding(attributes_.padding),
                       attributes_.align_corners};
    return found;
  }

  const ffi::AnyBuffer& x_;
  SampleAttributes attributes_;
  const char* op_;
  size_t axes_ = 0;
};

template <class Binding>
auto with_samples(Binding binding) {
  return std::move(binding).template Attr<int64_t>("taps").template Attr<int64_t>("padding").template Attr<bool>(
      "align_corners");
}

}  // namespace baracuda
