// The sample pattern on a CUDA grid: a thread has a position, whose elements and weights it finds once, and goes
// through a chunk of the channels, a few at once: as many reads are on their way. Where there are many positions, a
// large block goes through those of an image, in a few channels, whose planes stay in the first-level cache.
//
// The cotangent of positions: a thread has one position and every so many channels; the threads of a position are added
// up in order. Where planes fit shared memory, a thread has a few positions and all channels.
#pragma once

#include <algorithm>

#include "plane_spans_cuda.h"
#include "sample_planes_cuda.h"
#include "sample_rows_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int sample_block = 256, sample_tangents_block = 512, sample_groups_block = 256, sample_blocks = 528;

// Channels whose elements are read before any is summed.
template <int taps>
inline constexpr int sample_together = taps <= 4   ? 4
                                       : taps <= 8 ? 2
                                                   : 1;

// Blocks of 256 threads that have room on a multiprocessor, where a thread has so many numbers of each element.
template <class Functor, class Sum>
constexpr int sample_blocks_at_once(int numbers) {
  int needed = (numbers + Functor::has_fill) * Functor::taps * int(sizeof(Sum));
  return sizeof(Sum) == 8 ? 2 : needed <= 48 ? 4 : needed <= 128 ? 3 : 2;
}

// Whether a thread of a large block has room for what it knows of a position, which has enough elements to read.
template <class Functor, class Sum>
inline constexpr bool has_large_blocks =
    Functor::taps >= 4 && (2 + Functor::has_fill) * Functor::taps * sizeof(Sum) <= 48;
inline constexpr int64_t most_of_planes = 224 * 1024;  // in the first-level cache

struct SampleGrid {
  int64_t tiles, chunk;  // of positions and of channels
  int64_t each = 1;      // tiles of a block

  // A block has so many positions.
  SampleGrid(const SampleShape& shape, int positions, int together = 1) : tiles(ceil_div(shape.points, positions)) {
    // As many channels as amortize finding the elements, unless there are too few blocks.
    chunk = std::clamp<int64_t>(shape.channels * shape.batches * tiles / sample_blocks, 1, 16);
    chunk = ceil_div(std::max(chunk, ceil_div(shape.channels, 65535)), together) * together;
  }
  SampleGrid(const SampleShape& shape, const PlaneSpans& spans)
      : tiles(spans.spans), chunk(std::max(spans.chunk, ceil_div(shape.channels, 65535))), each(spans.each) {}
  dim3 blocks(const SampleShape& shape) const {
    return {unsigned(shape.batches * tiles), unsigned(ceil_div(shape.channels, chunk)), 1};
  }
};

// C channels at once.
template <int block, int C, class Functor, class Sum, class T>
__global__ void __launch_bounds__(block, block > sample_block ? 1 : sample_blocks_at_once<Functor, Sum>(2))
    sample_points_of(Functor functor, SampleShape shape, SampleGrid grid, const T* __restrict__ x,
                     const Sum* __restrict__ positions, T* __restrict__ y) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill();
  unsigned batch = blockIdx.x / unsigned(grid.tiles), tile = blockIdx.x - batch * unsigned(grid.tiles);
  int64_t point = tile * grid.each * block + threadIdx.x, last = min((tile + 1) * grid.each * block, shape.points);
  int64_t first_channel = blockIdx.y * grid.chunk, end = min(first_channel + grid.chunk, shape.channels);
  x += (batch * shape.channels + first_channel) * shape.elements;
  y += (batch * shape.channels + first_channel) * shape.points;
  if (point >= last) return;
  typename Functor::Position next = functor.read(positions, batch, point, shape.points);
  for (; point < last; point += block) {
    typename Functor::Result found = functor.at(next.of);
    next = functor.read(positions, batch, min(point + block, last - 1), shape.points);
    int64_t channel = first_channel;
    const T* from = x;
    T* to = y + point;
    auto read = [&](auto together) {
      constexpr int count = together.value;
      Sum value[count][taps];
#pragma unroll
      for (int c = 0; c < count; ++c, from += shape.elements)
#pragma unroll
        for (int t = 0; t < taps; ++t) value[c][t] = sampled<Sum>(from, found.index[t], fill);
#pragma unroll
      for (int c = 0; c < count; ++c, to += shape.points) {
        Sum sum = value[c][0] * found.weight[0];
#pragma unroll
        for (int t = 1; t < taps; ++t) sum += value[c][t] * found.weight[t];
        *to = T(sum);
      }
      channel += count;
    };
    while (channel + C <= end) read(std::integral_constant<int, C>());
    if constexpr (C > 1)
      while (channel < end) read(std::integral_constant<int, 1>());
  }
}

template <class Functor, class Sum, class T>
__global__ void __launch_bounds__(sample_tangents_block)
    sample_tangents_of(Functor functor, SampleShape shape, SampleGrid grid, const T* __restrict__ x,
                       const Sum* __restrict__ positions, const T* __restrict__ dx, const Sum* __restrict__ moved,
                       T* __restrict__ dy) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill();
  int64_t batch = blockIdx.x / grid.tiles, tile = blockIdx.x - batch * grid.tiles;
  int64_t point = tile * sample_tangents_block + threadIdx.x;
  if (point >= shape.points) return;
  auto position = functor.read(positions, batch, point, shape.points);
  typename Functor::Result found = functor.at(position.of);
  Sum slope[taps];
  functor.tangent(position.of, functor.read(moved, batch, point, shape.points).of, slope);
  int64_t channel = blockIdx.y * grid.chunk, end = min(channel + grid.chunk, shape.channels);
  for (; channel < end; ++channel) {
    int64_t plane = batch * shape.channels + channel;
    const T *from = x + plane * shape.elements, *from_tangent = dx + plane * shape.elements;
    Sum sum = 0;
#pragma unroll
    for (int t = 0; t < taps; ++t) {
      sum += sampled<Sum>(from_tangent, found.index[t], Sum(0)) * found.weight[t];
      if constexpr (Functor::has_slope) sum += sampled<Sum>(from, found.index[t], fill) * slope[t];
    }
    dy[plane * shape.points + point] = T(sum);
  }
}

// Blocks of [groups, points]: group g has channels g, g + groups, ...
template <int C, class Functor, class Sum, class T>
__global__ void __launch_bounds__(sample_groups_block, sample_blocks_at_once<Functor, Sum>(C == 1 ? 3 : 4))
    sample_cotangents_of(Functor functor, SampleShape shape, int64_t tiles, int groups, const T* __restrict__ x,
                         const Sum* __restrict__ positions, const T* __restrict__ dy, Sum* __restrict__ moved) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill();
  __shared__ Sum parts[taps][sample_groups_block];
  int width = sample_groups_block / groups, lane = threadIdx.x % width, group = threadIdx.x / width;
  int64_t batch = blockIdx.x / tiles, point = (blockIdx.x - batch * tiles) * width + lane;
  bool is_there = point < shape.points;
  auto position = functor.read(positions, batch, is_there ? point : 0, shape.points);
  typename Functor::Result found = functor.at(position.of);
  Sum weight[taps] = {};
  if (is_there) {
    int64_t channel = group, step = groups * shape.elements, step_of_y = groups * shape.points;
    const T* from = x + (batch * shape.channels + group) * shape.elements;
    const T* from_y = dy + (batch * shape.channels + group) * shape.points + point;
    auto add = [&](auto together) {
      constexpr int count = together.value;
      Sum value[count][taps], of_result[count];
#pragma unroll
      for (int c = 0; c < count; ++c, from += step, from_y += step_of_y) {
        of_result[c] = Sum(*from_y);
#pragma unroll
        for (int t = 0; t < taps; ++t) value[c][t] = sampled<Sum>(from, found.index[t], fill);
      }
#pragma unroll
      for (int c = 0; c < count; ++c)
#pragma unroll
        for (int t = 0; t < taps; ++t) weight[t] += of_result[c] * value[c][t];
      channel += count * groups;
    };
    while (channel + (C - 1) * groups < shape.channels) add(std::integral_constant<int, C>());
    if constexpr (C > 1)
      while (channel < shape.channels) add(std::integral_constant<int, 1>());
  }
  if (groups > 1) {
#pragma unroll
    for (int t = 0; t < taps; ++t) parts[t][threadIdx.x] = weight[t];
    __syncthreads();
    if (group == 0)
      for (int g = 1; g < groups; ++g)
#pragma unroll
        for (int t = 0; t < taps; ++t) weight[t] += parts[t][g * width + lane];
  }
  if (!is_there || group > 0) return;
  typename Functor::Position of_position;
  functor.backward(position.of, weight, of_position.of);
  functor.write(moved, batch, point, shape.points, of_position);
}

}  // namespace internal

template <class Functor, class Sum, class T>
Status sample(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
              const Sum* positions, T* y) {
  constexpr int C = internal::sample_together<Functor::taps>;
  if constexpr (internal::has_planes<Functor, Sum>) {
    int64_t rows = functor.axis[0].n, row_bytes = functor.axis[1].n * int64_t(sizeof(T));
    internal::SamplePlanes planes(shape, row_bytes, rows);
    if (planes.serve(shape, x)) return internal::sample_planes(executor, functor, shape, planes, x, positions, y);
  }
  if constexpr (internal::has_large_blocks<Functor, Sum>) {
    using internal::PlaneSpans, internal::plane_block;
    int64_t tiles = ceil_div(shape.points, plane_block), bytes = shape.elements * int64_t(sizeof(T));
    if (shape.channels >= C && C * bytes <= internal::most_of_planes &&
        PlaneSpans::are_enough(shape.batches, shape.channels, tiles, C)) {
      PlaneSpans spans(shape.batches, shape.channels, tiles, bytes, C);
      internal::SampleGrid grid(shape, spans);
      internal::sample_points_of<plane_block, C>
          <<<grid.blocks(shape), plane_block, 0, executor.stream>>>(functor, shape, grid, x, positions, y);
      return launched();
    }
  }
  internal::SampleGrid grid(shape, internal::sample_block, C);
  internal::sample_points_of<internal::sample_block, C>
      <<<grid.blocks(shape), internal::sample_block, 0, executor.stream>>>(functor, shape, grid, x, positions, y);
  return launched();
}

template <class Functor, class Sum, class T>
Status sample_tangent(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
                      const Sum* positions, const T* dx, const Sum* moved, T* dy) {
  internal::SampleGrid grid(shape, internal::sample_tangents_block);
  internal::sample_tangents_of<<<grid.blocks(shape), internal::sample_tangents_block, 0, executor.stream>>>(
      functor, shape, grid, x, positions, dx, moved, dy);
  return launched();
}

template <class Functor, class Sum, class T>
Status sample_backward(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
                       const Sum* positions, const T* dy, Sum* moved) {
  if constexpr (!Functor::has_slope) {
    int64_t bytes = shape.batches * shape.points * Functor::axes * int64_t(sizeof(Sum));
    cudaError_t error = cudaMemsetAsync(moved, 0, size_t(bytes), executor.stream);
    return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
  }
  if constexpr (internal::has_planes<Functor, Sum>) {
    internal::SampleRows rows(shape, functor.axis[1].n * int64_t(sizeof(T)), functor.axis[0].n);
    if (rows.serve(shape, x) && internal::has_bulk_copies(internal::sample_cotangents_by_rows<Functor, Sum, T>))
      return internal::sample_cotangents_in_rows(executor, functor, shape, rows, x, positions, dy, moved);
  }
  int groups = 1;  // until there are enough blocks
  while (groups < 16 && groups < shape.channels &&
         shape.batches * shape.points * groups < int64_t(internal::sample_blocks) * internal::sample_groups_block)
    groups *= 2;
  int64_t tiles = ceil_div(shape.points, internal::sample_groups_block / groups);
  auto launch = [&](auto together) {
    internal::sample_cotangents_of<together.value>
        <<<unsigned(shape.batches * tiles), internal::sample_groups_block, 0, executor.stream>>>(
            functor, shape, tiles, groups, x, positions, dy, moved);
  };
  constexpr int C = internal::sample_together<Functor::taps>;
  if (shape.channels < C * groups)
    launch(std::integral_constant<int, 1>());
  else
    launch(std::integral_constant<int, C>());
  return launched();
}

}  // namespace baracuda
