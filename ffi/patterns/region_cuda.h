// The region pattern on a CUDA grid: a thread has a bin and a chunk of channels, whose sums are in registers while it
// goes through the bin's positions. For the cotangent of frames a thread has a bin and every so many channels; the
// threads of a bin are added up in order.
#pragma once

#include <algorithm>

#include "region.h"

namespace baracuda {
namespace internal {

inline constexpr int region_block = 256, region_channels = 8;

template <bool has_tangent, class Sum, class T>
__global__ void __launch_bounds__(region_block)
    region_bins(Regions<Sum> work, const T* __restrict__ x, RegionTangent<T, Sum> tangent, T* __restrict__ y) {
  const RegionShape& shape = work.shape;
  int64_t bins = shape.bins(), point = int64_t(blockIdx.x) * region_block + threadIdx.x;
  int64_t box = point / bins;
  if (box >= shape.batches * shape.boxes) return;
  int bin = int(point - box * bins), i = bin / shape.columns, j = bin - i * shape.columns;
  RegionFrame<Sum> frame = work.frame(box);
  Sum moved[4] = {};
  if constexpr (has_tangent)
    for (int k = 0; k < 4; ++k) moved[k] = tangent.frames[4 * box + k];
  int64_t step = int64_t(gridDim.y) * region_channels;
  for (int64_t first = int64_t(blockIdx.y) * region_channels; first < shape.channels; first += step) {
    int count = int(min(shape.channels - first, int64_t(region_channels)));
    Sum sums[region_channels] = {};
    if (frame.image >= 0) {
      int64_t begin = work.begin(box, frame.image) + first * shape.plane();
      for (int s = 0; s < shape.samples; ++s)
        for (int t = 0; t < shape.samples; ++t) {
          RegionPosition<Sum> row = work.row(frame, i, s), column = work.column(frame, j, t);
          RegionSample<Sum> sample(row, column, shape.width);
          if (!sample.is_inside) continue;
#pragma unroll
          for (int c = 0; c < region_channels; ++c) {
            if (c >= count) continue;
            const T* plane = x + begin + c * shape.plane();
            if constexpr (has_tangent) {
              Sum along_y, along_x;
              sample.slopes(plane, row, column, along_y, along_x);
              sums[c] += sample.of(tangent.x + begin + c * shape.plane()) +
                         along_y * (moved[0] + row.steps * moved[1]) + along_x * (moved[2] + column.steps * moved[3]);
            } else {
              sums[c] += sample.of(plane);
            }
          }
        }
    }
    Sum samples = Sum(int64_t(shape.samples) * shape.samples);
#pragma unroll
    for (int c = 0; c < region_channels; ++c)
      if (c < count) y[(box * shape.channels + first + c) * bins + bin] = T(sums[c] / samples);
  }
}

// Blocks of [groups, bins]: group g has channels g, g + groups, ...
template <class Sum, class T>
__global__ void __launch_bounds__(region_block) region_frames(Regions<Sum> work, int groups, const T* __restrict__ x,
                                                              const T* __restrict__ dy, Sum* __restrict__ moved) {
  __shared__ Sum parts[4][region_block];
  const RegionShape& shape = work.shape;
  int width = region_block / groups, lane = threadIdx.x % width, group = threadIdx.x / width;
  int64_t bins = shape.bins(), point = int64_t(blockIdx.x) * width + lane, box = point / bins;
  bool is_there = box < shape.batches * shape.boxes;
  Sum total[4] = {};
  RegionFrame<Sum> frame{};
  if (is_there) frame = work.frame(box);
  if (is_there && frame.image >= 0) {
    int bin = int(point - box * bins), i = bin / shape.columns, j = bin - i * shape.columns;
    const T* image = x + work.begin(box, frame.image);
    Sum samples = Sum(int64_t(shape.samples) * shape.samples);
    for (int s = 0; s < shape.samples; ++s)
      for (int t = 0; t < shape.samples; ++t) {
        RegionPosition<Sum> row = work.row(frame, i, s), column = work.column(frame, j, t);
        RegionSample<Sum> sample(row, column, shape.width);
        if (!sample.is_inside) continue;
        Sum of_rows = 0, of_columns = 0;
        for (int64_t channel = group; channel < shape.channels; channel += groups) {
          Sum along_y, along_x, of_result = Sum(dy[(box * shape.channels + channel) * bins + bin]) / samples;
          sample.slopes(image + channel * shape.plane(), row, column, along_y, along_x);
          of_rows += of_result * along_y, of_columns += of_result * along_x;
        }
        total[0] += of_rows, total[1] += of_rows * row.steps;
        total[2] += of_columns, total[3] += of_columns * column.steps;
      }
  }
  if (groups > 1) {
#pragma unroll
    for (int k = 0; k < 4; ++k) parts[k][threadIdx.x] = total[k];
    __syncthreads();
    if (group == 0)
      for (int g = 1; g < groups; ++g)
#pragma unroll
        for (int k = 0; k < 4; ++k) total[k] += parts[k][g * width + lane];
  }
  if (is_there && group == 0)
#pragma unroll
    for (int k = 0; k < 4; ++k) moved[4 * point + k] = total[k];
}

}  // namespace internal

template <class Sum, class T>
Status sample_regions(const Executor& executor, const Regions<Sum>& work, const T* x,
                      const RegionTangent<T, Sum>* tangent, T* y) {
  const RegionShape& shape = work.shape;
  int64_t chunks = std::min<int64_t>(ceil_div(shape.channels, internal::region_channels), 65535);
  int64_t points = shape.batches * shape.boxes * shape.bins();
  dim3 blocks(unsigned(ceil_div(points, internal::region_block)), unsigned(chunks));
  if (tangent != nullptr)
    internal::region_bins<true><<<blocks, internal::region_block, 0, executor.stream>>>(work, x, *tangent, y);
  else
    internal::region_bins<false>
        <<<blocks, internal::region_block, 0, executor.stream>>>(work, x, RegionTangent<T, Sum>{}, y);
  return launched();
}

template <class Sum, class T>
Status region_cotangents(const Executor& executor, const Regions<Sum>& work, const T* x, const T* dy, Sum* moved) {
  const RegionShape& shape = work.shape;
  int64_t points = shape.batches * shape.boxes * shape.bins();
  int groups = 1;  // until there are enough threads
  while (groups < 8 && groups < shape.channels && points * groups < 1 << 18) groups *= 2;
  unsigned blocks = unsigned(ceil_div(points, internal::region_block / groups));
  internal::region_frames<<<blocks, internal::region_block, 0, executor.stream>>>(work, groups, x, dy, moved);
  return launched();
}

}  // namespace baracuda
