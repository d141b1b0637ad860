// Boxes, of which two overlap or not. The arithmetic is that of `box_iou`, term by term.
#pragma once

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

// Whether the intersection of two boxes over their union is above the limit. It is not for a NaN among the corners,
// since an area is NaN then, nor for a union of no area.
template <class Sum>
BARACUDA_HD bool overlap(const Box<Sum>& a, const Box<Sum>& b, Sum limit) {
  Sum width = (a.right < b.right ? a.right : b.right) - (a.left > b.left ? a.left : b.left);
  Sum height = (a.bottom < b.bottom ? a.bottom : b.bottom) - (a.top > b.top ? a.top : b.top);
  width = width <= 0 ? Sum(0) : width, height = height <= 0 ? Sum(0) : height;
  Sum common = rounded_product(width, height), both = a.area + b.area - common;
  return both != 0 && common / both > limit;
}

}  // namespace baracuda
