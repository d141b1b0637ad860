// Regions of images: boxes that are cut into bins, in each of which an image is interpolated linearly at some
// positions.
#pragma once

#include "rounded.h"

namespace baracuda {

// Where a box is in an image, -1 for none: bin i begins at low + i step along each axis.
template <class Sum>
struct RegionFrame {
  int32_t image;
  Sum low_y, step_y, low_x, step_x;
};

// One position along an axis of n elements: the two elements around it, the weight of the second one and its derivative
// in the position, and how many steps it is from the beginning of the box.
template <class Sum>
struct RegionPosition {
  int32_t first, second;
  Sum after, slope, steps;
  bool is_inside;  // others give 0

  RegionPosition() = default;
  BARACUDA_HD RegionPosition(Sum low, Sum step, int bin, int sample, int samples, int n) {
    steps = Sum(bin) + (Sum(sample) + Sum(0.5)) / Sum(samples);
    Sum position = low + rounded_product(steps, step), last = Sum(n - 1);
    is_inside = position >= -1 && position <= Sum(n);
    bool is_between = position > 0 && position < last;
    position = is_between ? position : position > 0 ? last : Sum(0);
    slope = is_between ? Sum(1) : Sum(0);
    Sum low_end = std::floor(position);
    first = int32_t(low_end), second = first + 1 < n ? first + 1 : n - 1;
    after = position - low_end;
  }
};

// The four elements around a position in an image, with their weights.
template <class Sum>
struct RegionSample {
  int32_t index[4];
  Sum weight[4];
  bool is_inside;

  BARACUDA_HD RegionSample(const RegionPosition<Sum>& y, const RegionPosition<Sum>& x, int32_t width) {
    is_inside = y.is_inside && x.is_inside;
    index[0] = y.first * width + x.first, index[1] = y.first * width + x.second;
    index[2] = y.second * width + x.first, index[3] = y.second * width + x.second;
    weight[0] = (1 - y.after) * (1 - x.after), weight[1] = (1 - y.after) * x.after;
    weight[2] = y.after * (1 - x.after), weight[3] = y.after * x.after;
  }
  template <class T>
  BARACUDA_HD Sum of(const T* image) const {
    return Sum(image[index[0]]) * weight[0] + Sum(image[index[1]]) * weight[1] + Sum(image[index[2]]) * weight[2] +
           Sum(image[index[3]]) * weight[3];
  }
  // The derivatives of that along both axes.
  template <class T>
  BARACUDA_HD void slopes(const T* image, const RegionPosition<Sum>& y, const RegionPosition<Sum>& x, Sum& along_y,
                          Sum& along_x) const {
    Sum a = Sum(image[index[0]]), b = Sum(image[index[1]]), c = Sum(image[index[2]]), d = Sum(image[index[3]]);
    along_y = y.slope * ((c - a) * (1 - x.after) + (d - b) * x.after);
    along_x = x.slope * ((b - a) * (1 - y.after) + (d - c) * y.after);
  }
};

}  // namespace baracuda
