// Projections of rows on the simplex that leave elements at 0: sparsemax (Martins and Astudillo, 2016) and 1.5-entmax
// (Peters et al., 2019).
//
// A row's result is a function of z - tau, with z = (x - max x) * scale <= 0 and the threshold tau, at which the
// results add up to 1. That is the root of a convex function of tau, which Newton's method reaches from the left
// without ever passing it: from -1, at which the largest element's result alone is 1. A projection has what is kept of
// z (`part`), two sums over a row of that (`push`), the step that they give (`next`), at most so many `steps`, and the
// result of an element (`value`). It may write what a row has once (`finish`).
#pragma once

#include "greater.h"
#include "row_sums.h"

namespace baracuda {

// The rounding of a result, but never to 0 where it is more: the gradient of sparsemax finds the support in results.
template <class T, class Wide>
BARACUDA_HD T kept_above_zero(Wide value) {
  constexpr Wide smallest = std::is_same_v<T, Half> ? Wide(0x1p-24) : Wide(0);
  return T(((value > Wide(0)) & (value < smallest)) ? smallest : value);
}

// The most steps. Each leaves at most a quarter of the product of the function and its slope, which of n elements is at
// most n^2 in the beginning: float64 needs no more for 2^38 elements.
inline constexpr int newton_steps = 64;

// y = max(z - tau, 0). A step is the exact solution on the elements above tau: the last is where none of them leaves.
template <class T>
struct Sparsemax {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr Wide scale = 1;
  static constexpr int steps = newton_steps;
  const T* x;
  T* y;

  static BARACUDA_HD Wide part(Wide z) { return z; }
  // The number of elements above tau, and their sum.
  static BARACUDA_HD void push(Wide z, Wide tau, Wide& count, Wide& sum) {
    bool is_above = z > tau;
    count += value_if(is_above, Wide(1)), sum += value_if(is_above, z);
  }
  static BARACUDA_HD Wide next(Wide tau, Wide count, Wide sum) { return (sum - 1) / count; }
  static BARACUDA_HD T value(Wide z, Wide tau) {
    Wide above = z - tau;
    return kept_above_zero<T>(above < 0 ? Wide(0) : above);  // NaN stays
  }
};

// y = max(z - tau, 0)^2. Newton's method is applied to the root of the sum of squares, which is nearly linear, not to
// the sum: on rows of equal elements one step is enough.
template <class T>
struct Entmax15 {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr Wide scale = Wide(0.5);
  static constexpr int steps = newton_steps;
  const T* x;
  T* y;

  static BARACUDA_HD Wide part(Wide z) { return z; }
  // The sums of what is above tau, and of its squares.
  static BARACUDA_HD void push(Wide z, Wide tau, Wide& sum, Wide& squares) {
    Wide difference = z - tau, above = difference > 0 ? difference : Wide(0);
    sum += above, squares += above * above;
  }
  static BARACUDA_HD Wide next(Wide tau, Wide sum, Wide squares) {
    Wide norm = std::sqrt(squares);
    return tau + (norm - 1) * norm / sum;
  }
  static BARACUDA_HD T value(Wide z, Wide tau) {
    Wide above = z - tau;
    above = above < 0 ? Wide(0) : above;  // NaN stays
    return T(above * above);
  }
};

// The weight of an element in its row's gradient, of its result: 1 or 0 of sparsemax, the root of 1.5-entmax. NaN
// stays.
struct SupportWeight {
  template <class Wide>
  BARACUDA_HD Wide of(Wide y) const {
    return y > 0 ? Wide(1) : y;
  }
};
struct RootWeight {
  template <class Wide>
  BARACUDA_HD Wide of(Wide y) const {
    return std::sqrt(y);
  }
};

}  // namespace baracuda
