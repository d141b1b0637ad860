// The elements along an axis of an image around a position of a grid, which has numbers from -1 to 1.
#pragma once

#include "sample_weight.h"

namespace baracuda {

enum class SamplePadding : int { zeros, border, reflection };

// An axis of n elements. The grid's -1 and 1 are the centers of the outermost elements, or else the image's edges.
template <class Sum, int K>
struct SampledAxis {
  using Number = Sum;
  static constexpr int taps = K;
  static constexpr bool has_fill = false, fills_outside = false, by_axis = false;
  int32_t n;
  SamplePadding padding;
  bool align_corners;

  BARACUDA_HD AxisSample<Sum, K> at(Sum grid) const {
    AxisSample<Sum, K> found;
    Sum scale = align_corners ? Sum(n - 1) / 2 : Sum(n) / 2;
    Sum position = align_corners ? rounded_product(grid + 1, scale) : (rounded_product(grid + 1, Sum(n)) - 1) / 2;
    if constexpr (K == 1) {
      Sum slope = 1;
      found.index[0] = index_of(std::rint(padded(position, slope)));
      found.weight[0] = 1, found.slope[0] = 0;
    } else if constexpr (K == 2) {
      position = padded(position, scale);
      Sum first = std::floor(position), after = position - first;
      found.index[0] = index_of(first), found.index[1] = index_of(first + 1);
      found.weight[0] = 1 - after, found.weight[1] = after;
      found.slope[0] = -scale, found.slope[1] = scale;
    } else {
      // Each element is brought into the image by itself, its weight being that of where it was.
      Sum first = std::floor(position), after = position - first, before = 1 - after;
      BARACUDA_UNROLL_TAPS
      for (int k = 0; k < K; ++k) {
        Sum slope = 1;
        found.index[k] = index_of(padded(first + Sum(k - 1), slope));
      }
      using Cubic = KeysCubic<Sum>;
      found.weight[0] = Cubic::far(after + 1), found.weight[1] = Cubic::near(after);
      found.weight[2] = Cubic::near(before), found.weight[3] = Cubic::far(before + 1);
      found.slope[0] = Cubic::far_slope(after + 1) * scale, found.slope[1] = Cubic::near_slope(after) * scale;
      found.slope[2] = -Cubic::near_slope(before) * scale, found.slope[3] = -Cubic::far_slope(before + 1) * scale;
    }
    return found;
  }

 private:
  // NaN is none.
  BARACUDA_HD int32_t index_of(Sum position) const {
    return position >= 0 && position <= Sum(n - 1) ? int32_t(position) : no_element;
  }

  // The position in the image; its slope is multiplied by that of what moves it, which is 0 at a border.
  BARACUDA_HD Sum padded(Sum position, Sum& slope) const {
    if (padding == SamplePadding::zeros) return position;
    if (padding == SamplePadding::reflection) position = reflected(position, slope);
    bool is_inside = position > 0 && position < Sum(n - 1);
    slope = is_inside ? slope : Sum(0);
    return is_inside ? position : position > 0 ? Sum(n - 1) : Sum(0);
  }

  // About the centers of the outermost elements, or about the image's edges.
  BARACUDA_HD Sum reflected(Sum position, Sum& slope) const {
    Sum low = align_corners ? Sum(0) : Sum(-0.5), span = align_corners ? Sum(n - 1) : Sum(n);
    if (span == 0) {
      slope = 0;
      return 0;
    }
    if (position < low) slope = -slope;
    Sum distance = position < low ? low - position : position - low;
    Sum turns = std::floor(distance / span), rest = std::fmod(distance, span);
    if (std::fmod(turns, Sum(2)) == 0) return rest + low;
    slope = -slope;
    return span - rest + low;
  }
};

template <class Sum, int K, int rank>
using GridSample = AxesSample<SampledAxis<Sum, K>, rank>;

#ifndef __CUDACC__
// Loops over positions vectorize where it is known that none is reflected.
template <class Sum, int K, int rank, class Body>
void for_known(const GridSample<Sum, K, rank>& functor, const Body& body) {
  auto known = functor;
  auto with = [&](SamplePadding padding, bool align_corners) __attribute__((always_inline)) {
    for (auto& axis : known.axis) axis.padding = padding, axis.align_corners = align_corners;
    body(known);
  };
  switch (functor.axis[0].padding) {
    case SamplePadding::zeros:
      return functor.axis[0].align_corners ? with(SamplePadding::zeros, true) : with(SamplePadding::zeros, false);
    case SamplePadding::border:
      return functor.axis[0].align_corners ? with(SamplePadding::border, true) : with(SamplePadding::border, false);
    default:
      return body(functor);
  }
}
#endif

}  // namespace baracuda
