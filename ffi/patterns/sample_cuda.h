// The sample pattern on a CUDA grid: a thread has a few positions, whose elements and weights it finds once, and goes
// through a chunk of the channels. A block's positions are many, so that an image of one channel, which all of them
// read, stays in the first-level cache.
//
// The cotangent of positions: a thread has one position and every so many channels; the threads of a position are added
// up in order.
#pragma once

#include <algorithm>

#include "sample.h"

namespace baracuda {
namespace internal {

inline constexpr int sample_block = 512, sample_groups_block = 256, sample_blocks = 528;
// Where there are few positions, smaller blocks leave fewer multiprocessors with more of them than others have.
inline constexpr int sample_small_block = 256;

// Positions of a thread, as many as registers hold what is known of them.
template <int taps>
inline constexpr int sample_points = taps >= 8  ? 1
                                     : taps > 2 ? 4
                                                : 8;

// Channels whose elements are read before any is summed, where a thread has one position.
template <int taps>
inline constexpr int sample_together = taps <= 4   ? 4
                                       : taps <= 8 ? 2
                                                   : 1;

struct SampleGrid {
  int64_t tiles, chunk;  // of positions and of channels

  // A block has so many positions.
  SampleGrid(const SampleShape& shape, int positions, int together = 1) : tiles(ceil_div(shape.points, positions)) {
    // As many channels as amortize finding the elements, unless there are too few blocks.
    chunk = std::clamp<int64_t>(shape.channels * shape.batches * tiles / sample_blocks, 1, 16);
    chunk = ceil_div(std::max(chunk, ceil_div(shape.channels, 65535)), together) * together;
  }
  dim3 blocks(const SampleShape& shape) const {
    return {unsigned(shape.batches * tiles), unsigned(ceil_div(shape.channels, chunk)), 1};
  }
};

// P positions of a thread and C channels at once.
template <int block, int P, int C, class Functor, class Sum, class T>
__global__ void __launch_bounds__(block, P * C * Functor::taps * sizeof(Sum) <= 64 ? 1024 / block : 512 / block)
    sample_points_of(Functor functor, SampleShape shape, SampleGrid grid, const T* __restrict__ x,
                     const Sum* __restrict__ positions, T* __restrict__ y) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill;
  int64_t batch = blockIdx.x / grid.tiles, tile = blockIdx.x - batch * grid.tiles;
  int64_t first = tile * block * P + threadIdx.x;
  typename Functor::Result found[P];
#pragma unroll
  for (int p = 0; p < P; ++p) {
    int64_t point = min(first + p * block, shape.points - 1);
    found[p] = functor.at(functor.read(positions, batch, point, shape.points).of);
  }
  int64_t channel = blockIdx.y * grid.chunk, end = min(channel + grid.chunk, shape.channels);
  for (; channel < end; channel += C) {
    Sum sum[C][P];
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const T* from = x + (batch * shape.channels + min(channel + c, end - 1)) * shape.elements;
#pragma unroll
      for (int p = 0; p < P; ++p) {
        sum[c][p] = sampled<Sum>(from, found[p].index[0], fill) * found[p].weight[0];
#pragma unroll
        for (int t = 1; t < taps; ++t) sum[c][p] += sampled<Sum>(from, found[p].index[t], fill) * found[p].weight[t];
      }
    }
#pragma unroll
    for (int c = 0; c < C; ++c) {
      T* to = y + (batch * shape.channels + channel + c) * shape.points;
#pragma unroll
      for (int p = 0; p < P; ++p)
        if (channel + c < end && first + p * block < shape.points) to[first + p * block] = T(sum[c][p]);
    }
  }
}

template <class Functor, class Sum, class T>
__global__ void __launch_bounds__(sample_block)
    sample_tangents_of(Functor functor, SampleShape shape, SampleGrid grid, const T* __restrict__ x,
                       const Sum* __restrict__ positions, const T* __restrict__ dx, const Sum* __restrict__ moved,
                       T* __restrict__ dy) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill;
  int64_t batch = blockIdx.x / grid.tiles, tile = blockIdx.x - batch * grid.tiles;
  int64_t point = tile * sample_block + threadIdx.x;
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
template <class Functor, class Sum, class T>
__global__ void __launch_bounds__(sample_groups_block)
    sample_cotangents_of(Functor functor, SampleShape shape, int64_t tiles, int groups, const T* __restrict__ x,
                         const Sum* __restrict__ positions, const T* __restrict__ dy, Sum* __restrict__ moved) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill;
  __shared__ Sum parts[taps][sample_groups_block];
  int width = sample_groups_block / groups, lane = threadIdx.x % width, group = threadIdx.x / width;
  int64_t batch = blockIdx.x / tiles, point = (blockIdx.x - batch * tiles) * width + lane;
  bool is_there = point < shape.points;
  auto position = functor.read(positions, batch, is_there ? point : 0, shape.points);
  typename Functor::Result found = functor.at(position.of);
  Sum weight[taps] = {};
  if (is_there)
    for (int64_t channel = group; channel < shape.channels; channel += groups) {
      int64_t plane = batch * shape.channels + channel;
      const T* from = x + plane * shape.elements;
      Sum of_result = Sum(dy[plane * shape.points + point]);
#pragma unroll
      for (int t = 0; t < taps; ++t) weight[t] += of_result * sampled<Sum>(from, found.index[t], fill);
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
  constexpr int P = internal::sample_points<Functor::taps>;
  auto launch = [&](auto threads, auto points, auto together) {
    internal::SampleGrid grid(shape, threads.value * points.value, together.value);
    internal::sample_points_of<threads.value, points.value, together.value>
        <<<grid.blocks(shape), threads.value, 0, executor.stream>>>(functor, shape, grid, x, positions, y);
    return launched();
  };
  // Threads with several positions are for so many channels that there are enough blocks nevertheless.
  constexpr int64_t enough = int64_t(8) * internal::sample_blocks * internal::sample_block * P;
  if (shape.batches * shape.channels * shape.points < enough || shape.points < int64_t(internal::sample_block) * P)
    return launch(std::integral_constant<int, internal::sample_small_block>(), std::integral_constant<int, 1>(),
                  std::integral_constant<int, internal::sample_together<Functor::taps>>());
  return launch(std::integral_constant<int, internal::sample_block>(), std::integral_constant<int, P>(),
                std::integral_constant<int, 1>());
}

template <class Functor, class Sum, class T>
Status sample_tangent(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
                      const Sum* positions, const T* dx, const Sum* moved, T* dy) {
  internal::SampleGrid grid(shape, internal::sample_block);
  internal::sample_tangents_of<<<grid.blocks(shape), internal::sample_block, 0, executor.stream>>>(
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
  int groups = 1;  // until there are enough blocks
  while (groups < 16 && groups < shape.channels &&
         shape.batches * shape.points * groups < int64_t(internal::sample_blocks) * internal::sample_groups_block)
    groups *= 2;
  int64_t tiles = ceil_div(shape.points, internal::sample_groups_block / groups);
  internal::
      sample_cotangents_of<<<unsigned(shape.batches * tiles), internal::sample_groups_block, 0, executor.stream>>>(
          functor, shape, tiles, groups, x, positions, dy, moved);
  return launched();
}

}  // namespace baracuda
