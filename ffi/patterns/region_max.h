// The region pattern with bins of whole elements: each bin of a box has the elements between two rows and two columns,
// and gives the maximum of each channel.
#pragma once

#include "../kernels/region_max.h"
#include "region.h"

namespace baracuda {

// Of each box its image; of each of its bins the first row and the one after the last, and so the columns; `samples` of
// the shape has no meaning.
struct RegionBins {
  RegionShape shape;
  const int32_t *image, *rows, *columns;

  struct Bin {
    int first_row, last_row, first_column, last_column;
  };

  BARACUDA_HD bool has_image(int64_t box) const { return image[box] >= 0 && image[box] < shape.images; }
  // None of a box without an image.
  BARACUDA_HD Bin bin(int64_t box, int i, int j) const {
    const int32_t *r = rows + 2 * (box * shape.rows + i), *c = columns + 2 * (box * shape.columns + j);
    return {at_least_0(r[0]), at_most(r[1], shape.height), at_least_0(c[0]), at_most(c[1], shape.width)};
  }
  // Where channel 0 of the image of a box begins in x.
  BARACUDA_HD int64_t begin(int64_t box) const {
    return (box / shape.boxes * shape.images + image[box]) * shape.channels * shape.plane();
  }
  // The index of a maximum in its plane; one after the last for none.
  BARACUDA_HD int32_t index(int32_t found) const { return found < 0 ? int32_t(shape.plane()) : found; }

 private:
  BARACUDA_HD static int at_least_0(int i) { return i < 0 ? 0 : i; }
  BARACUDA_HD static int at_most(int i, int n) { return i < n ? i : n; }
};

}  // namespace baracuda
