// The region pattern: boxes of images as images of a fixed size, each element of which is the mean of samples^2
// positions.
#pragma once

#include "../kernels/region.h"
#include "executor.h"

namespace baracuda {

// x [batches, images, channels, height, width]; of each box [batches, boxes] an image and a frame [4]; y [batches,
// boxes, channels, rows, columns].
struct RegionShape {
  int64_t batches, images, channels, boxes;
  int height, width, rows, columns, samples;

  BARACUDA_HD int64_t plane() const { return int64_t(height) * width; }
  BARACUDA_HD int64_t bins() const { return int64_t(rows) * columns; }
};

template <class Sum>
struct Regions {
  RegionShape shape;
  const int32_t* image;
  const Sum* frames;

  // Of box `box` of all batches.
  BARACUDA_HD RegionFrame<Sum> frame(int64_t box) const {
    int32_t of = image[box];
    const Sum* f = frames + 4 * box;
    return {of >= 0 && of < shape.images ? of : -1, f[0], f[1], f[2], f[3]};
  }
  // Where the image of a box begins in x.
  BARACUDA_HD int64_t begin(int64_t box, int32_t of) const {
    return (box / shape.boxes * shape.images + of) * shape.channels * shape.plane();
  }
  BARACUDA_HD RegionPosition<Sum> row(const RegionFrame<Sum>& f, int bin, int sample) const {
    return {f.low_y, f.step_y, bin, sample, shape.samples, shape.height};
  }
  BARACUDA_HD RegionPosition<Sum> column(const RegionFrame<Sum>& f, int bin, int sample) const {
    return {f.low_x, f.step_x, bin, sample, shape.samples, shape.width};
  }
};

// A tangent: of x, and of the frames.
template <class T, class Sum>
struct RegionTangent {
  const T* x;
  const Sum* frames;
};

}  // namespace baracuda
