// Maxima of bins on a CUDA grid: a team of lanes has a bin of a channel. Lanes go through every so many columns of each
// row, so that they read next to each other, and are merged by shuffles; a bin of few columns has one lane. Bins that
// follow each other are read by threads that do.
#pragma once

#include <algorithm>

#include "region_max.h"

namespace baracuda {
namespace internal {

inline constexpr int region_max_block = 256;

template <int lanes, class Sum, class T>
__global__ void __launch_bounds__(region_max_block)
    region_maxima(RegionBins work, const T* __restrict__ x, T* __restrict__ y, int32_t* __restrict__ arg) {
  const RegionShape& shape = work.shape;
  int64_t bins = shape.bins(), count = shape.batches * shape.boxes * shape.channels * bins;
  int64_t step = int64_t(gridDim.x) * (region_max_block / lanes);
  int lane = threadIdx.x % lanes;
  for (int64_t to = int64_t(blockIdx.x) * (region_max_block / lanes) + threadIdx.x / lanes;; to += step) {
    // All lanes of a warp take part in its shuffles.
    bool is_there = to < count;
    if (!__any_sync(~0u, is_there)) break;
    RegionMaximum<Sum> found;
    int64_t plane = to / bins, box = plane / shape.channels;
    if (is_there && work.has_image(box)) {
      int bin_index = int(to - plane * bins), i = bin_index / shape.columns;
      RegionBins::Bin bin = work.bin(box, i, bin_index - i * shape.columns);
      const T* from = x + work.begin(box) + (plane - box * shape.channels) * shape.plane();
      for (int r = bin.first_row; r < bin.last_row; ++r)
        for (int c = bin.first_column + lane; c < bin.last_column; c += lanes) {
          int32_t at = r * shape.width + c;
          found.take(Sum(from[at]), at);
        }
    }
#pragma unroll
    for (int apart = lanes / 2; apart > 0; apart /= 2)
      found.merge({__shfl_xor_sync(~0u, found.value, apart), __shfl_xor_sync(~0u, found.index, apart)});
    if (is_there && lane == 0) {
      y[to] = T(found.value);
      if (arg != nullptr) arg[to] = work.index(found.index);
    }
  }
}

}  // namespace internal

// `arg` is null where nobody reads it.
template <class Sum, class T>
Status max_regions(const Executor& executor, const RegionBins& work, const T* x, T* y, int32_t* arg) {
  const RegionShape& shape = work.shape;
  int64_t count = shape.batches * shape.boxes * shape.channels * shape.bins();
  auto launch = [&](auto lanes) {
    int64_t blocks = std::min<int64_t>(ceil_div(count * lanes.value, internal::region_max_block), int64_t(1) << 20);
    internal::region_maxima<lanes.value, Sum>
        <<<unsigned(blocks), internal::region_max_block, 0, executor.stream>>>(work, x, y, arg);
    return launched();
  };
  // The columns of a bin of a box that is as wide as the image, at least.
  if (shape.width / shape.columns >= 16) return launch(std::integral_constant<int, 8>());
  return launch(std::integral_constant<int, 1>());
}

}  // namespace baracuda
