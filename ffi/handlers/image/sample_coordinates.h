// Images at coordinates that count elements: `taps` along each axis, the mode by which axes go on outside, and the
// value that there is outside in some modes.
#pragma once

#include "kernels/sample_coordinates.h"
#include "sample.h"

namespace baracuda {

template <class Sum, int K, int rank>
using CoordinateSample = AxesSample<CoordinateAxis<Sum, K>, rank>;

class CoordinateSampling : public SampledArrays {
 public:
  CoordinateSampling(const char* op, const ffi::AnyBuffer& x, const ffi::AnyBuffer& positions, const ffi::AnyBuffer& y,
                     int64_t taps, int64_t mode, double fill)
      : SampledArrays(op, x, positions, y, 1, true), taps_(taps), mode_(mode), fill_(fill) {
    checks
        .require(taps == 1 || taps == 2 || (taps == 4 && axes_ < 3),
                 "taps must be 1 or 2, or 4 of at most 2 coordinates, got ", taps)
        .require(0 <= mode && mode <= 6, "mode must be 0 to 6, got ", mode);
  }

  template <class Body>
  ffi::Error run(const Body& body) const {
    return for_float(op, "x", x_.element_type(), [&](auto type) {
      using Sum = Accumulator<typename decltype(type)::type>;
      auto with = [&](auto taps, auto axes) {
        CoordinateSample<Sum, taps.value, axes.value> functor;
        for (int a = 0; a < axes.value; ++a) functor.axis[a] = {size(a), CoordinateMode(mode_)};
        functor.fill_value = Sum(fill_);
        return body(functor, type);
      };
      constexpr std::integral_constant<int, 1> one;
      constexpr std::integral_constant<int, 2> two;
      constexpr std::integral_constant<int, 4> four;
      if (axes_ == 3) {
        constexpr std::integral_constant<int, 3> three;
        return taps_ == 1 ? with(one, three) : with(two, three);
      }
      if (axes_ == 2) return taps_ == 1 ? with(one, two) : taps_ == 2 ? with(two, two) : with(four, two);
      return taps_ == 1 ? with(one, one) : taps_ == 2 ? with(two, one) : with(four, one);
    });
  }

 private:
  int64_t taps_, mode_;
  double fill_;
};

template <class Binding>
auto with_coordinates(Binding binding) {
  return binding.template Attr<int64_t>("taps").template Attr<int64_t>("mode").template Attr<double>("fill");
}

}  // namespace baracuda
