// Maxima of bins on CPU threads: a task has a box and some of its channels.
#pragma once

#include <algorithm>

#include "region_max.h"

namespace baracuda {

// `arg` is null where nobody reads it.
template <class Sum, class T>
Status max_regions(const Executor& executor, const RegionBins& work, const T* x, T* y, int32_t* arg) {
  const RegionShape& shape = work.shape;
  constexpr int64_t width = 32;
  int64_t chunks = ceil_div(shape.channels, width), bins = shape.bins();
  int64_t cost = std::min(width, shape.channels) * std::max<int64_t>(bins, shape.plane() / 4);
  parallel_for(executor, shape.batches * shape.boxes * chunks, cost, [&](int64_t task) {
    int64_t box = task / chunks, channel = task % chunks * width, end = std::min(shape.channels, channel + width);
    bool has_image = work.has_image(box);
    for (; channel < end; ++channel) {
      const T* from = has_image ? x + work.begin(box) + channel * shape.plane() : x;
      int64_t to = (box * shape.channels + channel) * bins;
      for (int i = 0; i < shape.rows; ++i)
        for (int j = 0; j < shape.columns; ++j, ++to) {
          RegionMaximum<Sum> found;
          if (has_image) {
            RegionBins::Bin bin = work.bin(box, i, j);
            for (int r = bin.first_row; r < bin.last_row; ++r)
              for (int c = bin.first_column; c < bin.last_column; ++c) {
                int32_t at = r * shape.width + c;
                found.take(Sum(from[at]), at);
              }
          }
          y[to] = T(found.value);
          if (arg != nullptr) arg[to] = work.index(found.index);
        }
    }
  });
  return {};
}

}  // namespace baracuda
