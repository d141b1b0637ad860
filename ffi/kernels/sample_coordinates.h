// The elements along an axis of an image around a coordinate that counts elements, as scipy.ndimage has it: splines of
// order 0, 1 and 3, and seven ways to go on outside.
#pragma once

#include "sample_weight.h"

namespace baracuda {

enum class CoordinateMode : int { constant, grid_constant, nearest, mirror, reflect, wrap, grid_wrap };

template <class Sum, int K>
struct CoordinateAxis {
  using Number = Sum;
  static constexpr int taps = K;
  static constexpr bool has_fill = true, fills_outside = true, by_axis = true;
  int32_t n;
  CoordinateMode mode;

  // NaN is not outside: its weights are NaN.
  BARACUDA_HD bool is_outside(Sum coordinate) const {
    return mode == CoordinateMode::constant && (coordinate < 0 || coordinate > Sum(n - 1));
  }

  BARACUDA_HD AxisSample<Sum, K> at(Sum coordinate) const {
    AxisSample<Sum, K> found;
    Sum slope = 1, position = inside(coordinate, slope);
    if constexpr (K == 1) {
      found.index[0] = index_of(std::floor(position + Sum(0.5)));
      found.weight[0] = 1, found.slope[0] = 0;
    } else if constexpr (K == 2) {
      Sum first = std::floor(position), after = position - first;
      found.index[0] = index_of(first), found.index[1] = index_of(first + 1);
      found.weight[0] = 1 - after, found.weight[1] = after;
      found.slope[0] = -slope, found.slope[1] = slope;
    } else {
      Sum first = std::floor(position), after = position - first, before = 1 - after;
      BARACUDA_UNROLL
      for (int k = 0; k < K; ++k) found.index[k] = index_of(first + Sum(k - 1));
      using Cubic = CubicSpline<Sum>;
      found.weight[0] = Cubic::far(before), found.weight[1] = Cubic::near(after);
      found.weight[2] = Cubic::near(before), found.weight[3] = Cubic::far(after);
      found.slope[0] = -Cubic::far_slope(before) * slope, found.slope[1] = Cubic::near_slope(after) * slope;
      found.slope[2] = -Cubic::near_slope(before) * slope, found.slope[3] = Cubic::far_slope(after) * slope;
    }
    return found;
  }

 private:
  // A coordinate brought into the image, and the slope of what brings it there.
  BARACUDA_HD Sum inside(Sum c, Sum& slope) const {
    Sum last = Sum(n - 1);
    switch (mode) {
      case CoordinateMode::nearest:
        if (c < 0 || c > last) slope = 0;
        return c < 0 ? Sum(0) : c > last ? last : c;
      case CoordinateMode::mirror:
        return turned(c, Sum(0), last, slope);
      case CoordinateMode::reflect:
        return turned(c, Sum(-0.5), Sum(n), slope);
      case CoordinateMode::wrap:
        if (n == 1) return none(slope);
        // The last element is where the first is: below 0 it stands for both, above it the first does.
        if (c < 0) return c + rounded_product(last, std::trunc(-c / last) + 1);
        return c > last ? c - rounded_product(last, std::trunc(c / last)) : c;
      case CoordinateMode::grid_wrap:
        return c < 0 || c > last ? c - rounded_product(Sum(n), std::floor(c / Sum(n))) : c;
      default:
        return c;
    }
  }

  // Turned back at `low` and at `low + span`.
  BARACUDA_HD Sum turned(Sum c, Sum low, Sum span, Sum& slope) const {
    if (n == 1) return none(slope);
    Sum distance = c - low, period = 2 * span;
    if (distance >= 0 && distance <= span) return c;
    Sum rest = distance - rounded_product(period, std::floor(distance / period));
    if (rest < span) return rest + low;
    slope = -slope;
    return period - rest + low;
  }

  BARACUDA_HD Sum none(Sum& slope) const {
    slope = 0;
    return 0;
  }

  // That of the element at an integer, which may be outside by a few.
  BARACUDA_HD int32_t index_of(Sum at) const {
    if (at >= 0 && at <= Sum(n - 1)) return int32_t(at);
    if (!(at >= -4 && at < Sum(n) + 4)) return no_element;  // and NaN
    int32_t i = int32_t(at);
    switch (mode) {
      case CoordinateMode::grid_constant:
        return no_element;
      case CoordinateMode::nearest:
        return i < 0 ? 0 : n - 1;
      case CoordinateMode::grid_wrap:
        return remainder(i, n);
      case CoordinateMode::reflect:
        i = remainder(i, 2 * n);
        return i < n ? i : 2 * n - 1 - i;
      default:
        if (n == 1) return 0;
        i = remainder(i, 2 * n - 2);
        return i < n ? i : 2 * n - 2 - i;
    }
  }
  BARACUDA_HD static int32_t remainder(int32_t i, int64_t n) { return int32_t((i % n + n) % n); }
};

}  // namespace baracuda
