// Weights of elements around a position, by their distance along an axis. `taps` elements have one.
#pragma once

#include <cmath>

#include "sample.h"

namespace baracuda {

// Keys' kernel with a = -3/4 of distances up to 1 and from there to 2, and its derivatives. What `far` takes for a
// distance, `from_far` says.
template <class Sum>
struct KeysCubic {
  static constexpr Sum a = Sum(-0.75);
  BARACUDA_HD static Sum near(Sum d) { return ((a + 2) * d - (a + 3)) * d * d + 1; }
  BARACUDA_HD static Sum far(Sum d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; }
  BARACUDA_HD static Sum near_slope(Sum d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; }
  BARACUDA_HD static Sum far_slope(Sum d) { return (3 * a * d - 10 * a) * d + 8 * a; }
  BARACUDA_HD static Sum from_far(Sum distance) { return distance; }
};

// The cubic B-spline of distances up to 1, and at 1 + d, `left` being what is after the distance 1 to its end;
// derivatives.
template <class Sum>
struct CubicSpline {
  BARACUDA_HD static Sum near(Sum d) { return (4 + d * d * (3 * d - 6)) / 6; }
  BARACUDA_HD static Sum near_slope(Sum d) { return d * (Sum(1.5) * d - 2); }
  BARACUDA_HD static Sum far(Sum left) { return left * left * left / 6; }
  BARACUDA_HD static Sum far_slope(Sum left) { return left * left / 2; }
  BARACUDA_HD static Sum from_far(Sum distance) { return 2 - distance; }
};

// Weights of elements by their distance from a position along an axis: of that of any of the `taps` that have one, or
// of a given one, in their order.
template <class Sum>
struct NearestWeight {
  static constexpr int taps = 1;
  BARACUDA_HD static Sum of(Sum) { return 1; }
  BARACUDA_HD static Sum of_tap(int, Sum) { return 1; }
};

template <class Sum>
struct LinearWeight {
  static constexpr int taps = 2;
  BARACUDA_HD static Sum of(Sum distance) { return 1 - distance; }
  BARACUDA_HD static Sum of_tap(int, Sum distance) { return 1 - distance; }
};

template <class Sum, class Cubic>
struct CubicWeight {
  static constexpr int taps = 4;
  BARACUDA_HD static Sum of(Sum distance) { return of_tap(distance <= 1 ? 1 : 0, distance); }
  BARACUDA_HD static Sum of_tap(int tap, Sum distance) {
    return tap == 1 || tap == 2 ? Cubic::near(distance) : Cubic::far(Cubic::from_far(distance));
  }
};

template <class Sum>
using KeysWeight = CubicWeight<Sum, KeysCubic<Sum>>;

template <class Sum>
using SplineWeight = CubicWeight<Sum, CubicSpline<Sum>>;

}  // namespace baracuda
