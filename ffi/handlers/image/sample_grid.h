// Images at the positions of a grid: `taps` along each axis, how what is outside is read, and whether the grid's -1 and
// 1 are the centers of the outermost elements.
#pragma once

#include "kernels/sample_grid.h"
#include "sample.h"

namespace baracuda {

class GridSampling : public SampledArrays {
 public:
  GridSampling(const char* op, const ffi::AnyBuffer& x, const ffi::AnyBuffer& positions, const ffi::AnyBuffer& y,
               int64_t taps, int64_t padding, bool align_corners)
      : SampledArrays(op, x, positions, y, 2, false), taps_(taps), padding_(padding), align_corners_(align_corners) {
    checks
        .require(taps == 1 || taps == 2 || (taps == 4 && axes_ == 2),
                 "taps must be 1 or 2, or 4 of 2 coordinates, got ", taps)
        .require(0 <= padding && padding <= 2, "padding must be 0, 1 or 2, got ", padding);
  }

  template <class Body>
  ffi::Error run(const Body& body) const {
    return for_float(op, "x", x_.element_type(), [&](auto type) {
      using Sum = Accumulator<typename decltype(type)::type>;
      auto with = [&](auto taps, auto axes) { return body(functor<Sum, taps.value, axes.value>(), type); };
      constexpr std::integral_constant<int, 1> one;
      constexpr std::integral_constant<int, 2> two;
      if (axes_ == 3) {
        constexpr std::integral_constant<int, 3> three;
        return taps_ == 1 ? with(one, three) : with(two, three);
      }
      if (taps_ == 4) return with(std::integral_constant<int, 4>(), two);
      return taps_ == 1 ? with(one, two) : with(two, two);
    });
  }

 private:
  template <class Sum, int K, int rank>
  GridSample<Sum, K, rank> functor() const {
    GridSample<Sum, K, rank> found{};
    for (int a = 0; a < rank; ++a) found.axis[a] = {size(a), SamplePadding(padding_), align_corners_};
    return found;
  }

  int64_t taps_, padding_;
  bool align_corners_;
};

template <class Binding>
auto with_grid(Binding binding) {
  return binding.template Attr<int64_t>("taps").template Attr<int64_t>("padding").template Attr<bool>("align_corners");
}

}  // namespace baracuda
