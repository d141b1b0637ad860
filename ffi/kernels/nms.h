// Boxes, of which two overlap or not. The arithmetic is that of `box_iou`, term by term.
#pragma once

#include <cmath>

#include "rounded.h"

namespace baracuda {

template <class Sum>
struct Box {
  Sum left, top, right, bottom, area;

  Box() = default;
  template <class T>
  BARACUDA_HD explicit Box(const T* corners)
      : left(Sum(corners[0])), top(Sum(corners[1])), right(Sum(corners[2])), bottom(Sum(corners[3])) {
    area = rounded_product(right - left, bottom - top);
  }
};

// Of two numbers. If one is a NaN, either may be the result.
template <class Sum>
BARACUDA_HD Sum smaller_of(Sum a, Sum b) {
#ifdef __CUDA_ARCH__
  return fmin(a, b);
#else
  return a < b ? a : b;
#endif
}
template <class Sum>
BARACUDA_HD Sum larger_of(Sum a, Sum b) {
#ifdef __CUDA_ARCH__
  return fmax(a, b);
#else
  return a > b ? a : b;
#endif
}

// Two boxes whose intersection over their union is compared with a limit of at least 0.
template <class Sum>
struct Overlap {
  Sum common, both;

  BARACUDA_HD Overlap(const Box<Sum>& a, const Box<Sum>& b) {
    Sum width = smaller_of(a.right, b.right) - larger_of(a.left, b.left);
    Sum height = smaller_of(a.bottom, b.bottom) - larger_of(a.top, b.top);
    common = rounded_product(larger_of(width, Sum(0)), larger_of(height, Sum(0)));
    both = a.area + b.area - common;
  }
  // It is not for a NaN among the corners, since an area is NaN then and so is the union, nor for a union of no area.
  BARACUDA_HD bool is_above(Sum limit) const { return both != 0 && common / both > limit; }

  // Without a division: is it surely above, or surely not? Let the rounded product of the union and a number n be less
  // than the intersection. Then the exact one is at most that, the exact quotient at least n, and so is the rounded
  // one. `next` is the number after the limit. Neither is true for a NaN.
  BARACUDA_HD bool is_surely_above(Sum next) const { return (both > 0) & (common > rounded_product(both, next)); }
  BARACUDA_HD bool is_surely_not_above(Sum limit) const { return common < rounded_product(both, limit); }
};

template <class Sum>
Sum next_after(Sum limit) {
  return std::nextafter(limit, Sum(2));
}

}  // namespace baracuda
