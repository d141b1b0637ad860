// The adjoint of the sample pattern on a CUDA grid: a thread has a strip of a column of elements and some channels. It
// goes down the rows of bins, each of which gives to as many elements as there are taps, whose sums are in registers:
// so it reads an entry once for all of these. Planes of dy are read where positions say; dx is written once, in order.
//
// A strip with a row that is much longer than others is summed by a warp, and one with a very long row by the block:
// each lane has every so many entries, and lanes are added in order.
#pragma once

#include <algorithm>

#include "sample_bins_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int adjoint_block = 256, adjoint_large_block = 1024;
inline constexpr uint32_t most_of_lane = 64, most_of_warp = 8192;  // entries of a row

// Channels whose sums a thread has.
template <class Sum>
inline constexpr int adjoint_many = sizeof(Sum) == 8 ? 4 : 8;
template <class Sum>
inline constexpr int adjoint_few = adjoint_many<Sum> / 2;

// Blocks that have room on a multiprocessor, where a thread has so many bytes of sums.
constexpr int adjoint_blocks(int block, int bytes) { return block == adjoint_large_block ? 1 : bytes > 64 ? 3 : 4; }

// The strips of C channels, from that of which `from` is the plane.
template <int block, int C, class Weight, class Sum, class T>
struct AdjointStrips {
  using Sums = SampleSums<C, Weight, Sum>;
  static constexpr int taps = Weight::taps;

  const SampleAdjointShape& shape;
  const uint32_t* offsets;
  const SampleEntry<Sum>* entries;
  const T* from;
  T* to;

  // Every `step`-th entry of [k, end).
  __device__ void add(Sums& sums, const SampleStrip& strip, int32_t row, uint32_t k, uint32_t end,
                      uint32_t step) const {
    for (; k < end; k += step) {
      SampleEntry<Sum> entry = entries[k];
      T value[C];
      const T* at = from + entry.point;
#pragma unroll
      for (int c = 0; c < C; ++c, at += shape.points) value[c] = *at;
      Sum weight[taps];
      Sums::weights_of(shape, strip, row, entry, weight);
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int t = 0; t < taps; ++t) sums.sum[t][c] += weight[t] * Sum(value[c]);
    }
  }

  // The sum of a warp or of the block, which all have then.
  __device__ static Sum add_lanes(Sum sum, bool is_block) {
    __shared__ Sum parts[block / 32];
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (!is_block) return sum;
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int warp = 0; warp < block / 32; ++warp) sum += parts[warp];
    __syncthreads();
    return sum;
  }

  // Whether all rows of the strip have at most so many entries; then it is written. A team of threads shares its
  // entries, the first of them being thread 0.
  template <bool is_team>
  __device__ bool sum(const SampleStrip& strip, uint32_t most, uint32_t thread, uint32_t step) const {
    int taps_of_y = shape.taps_of(1), taps_of_z = shape.taps_of(2);
    int32_t row = strip.y, last = strip.end + taps_of_y - 1;
    int64_t of_row = shape.bins_of(0), of_plane = of_row * shape.bins_of(1);
    const uint32_t* first = offsets + strip.z * of_plane + row * of_row + strip.x;
    T* result = to + (int64_t(strip.z) * shape.sizes[1] + strip.y) * shape.sizes[0] + strip.x;
    Sums sums;
    for (uint32_t begin = first[0], end = first[taps]; row < last; ++row, first += of_row) {
      for (int tap = 0; tap < taps_of_z; ++tap) {
        uint32_t k = begin, stop = end;
        bool is_last = tap + 1 == taps_of_z;
        // The next list's are on their way.
        if (!is_last || row + 1 < last) {
          const uint32_t* next = first + (is_last ? of_row : (tap + 1) * of_plane);
          begin = next[0], end = next[taps];
        }
        if (stop - k > most) return false;
        add(sums, strip, row, k + thread, stop, step);
      }
      if (row >= strip.y + taps_of_y - 1) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
          if constexpr (is_team) sums.sum[0][c] = add_lanes(sums.sum[0][c], step == block);
          if (thread == 0) result[c * shape.elements()] = T(sums.sum[0][c]);
        }
        result += shape.sizes[0];
      }
      sums.next_row();
    }
    return true;
  }
};

template <int block, int C, class Weight, class Sum, class T>
__global__ void __launch_bounds__(block, adjoint_blocks(block, Weight::taps * C * int(sizeof(Sum))))
    sample_adjoints_of(const __grid_constant__ SampleAdjointShape shape, SampleBins<Sum> all, SampleStrips strips,
                       unsigned blocks, unsigned chunks, const T* __restrict__ dy, T* __restrict__ dx) {
  __shared__ uint32_t are_long[block / 32];
  unsigned planes = blockIdx.x / blocks, tile = blockIdx.x - planes * blocks;
  // The last chunk has channels of the one before, where there are fewer left: their sums are the same.
  int64_t batch = planes / chunks, channel = min(int64_t(planes - batch * chunks) * C, shape.channels - C);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t plane = batch * shape.channels + channel, first = int64_t(tile) * block, i = first + threadIdx.x;
  AdjointStrips<block, C, Weight, Sum, T> of{shape, all.offsets + batch * all.stride, all.entries + batch * all.points,
                                             dy + plane * shape.points, dx + plane * shape.elements()};
  bool is_left = i < strips.count && !of.template sum<false>(strips.at(shape, i), most_of_lane, 0, 1);
  uint32_t left = __ballot_sync(~0u, is_left), long_ones = 0;
  for (; left; left &= left - 1) {
    int owner = __ffs(left) - 1;
    if (!of.template sum<true>(strips.at(shape, i - lane + owner), most_of_warp, lane, 32)) long_ones |= 1u << owner;
  }
  if (!__syncthreads_or(long_ones != 0)) return;
  if (lane == 0) are_long[warp] = long_ones;
  __syncthreads();
  for (int w = 0; w < block / 32; ++w)
    for (left = are_long[w]; left; left &= left - 1)
      of.template sum<true>(strips.at(shape, first + w * 32 + __ffs(left) - 1), ~0u, threadIdx.x, block);
}

template <int block, int C, class Weight, class Sum, class T>
Status launch_adjoints(const Executor& executor, const SampleAdjointShape& shape, const SampleBins<Sum>& bins,
                       int32_t length, const T* dy, T* dx) {
  SampleStrips strips(shape, length);
  int64_t chunks = ceil_div(shape.channels, C), blocks = ceil_div(strips.count, block);
  if (shape.batches * chunks * blocks >= int64_t(1) << 31) return {"sample_adjoint: there are too many elements"};
  sample_adjoints_of<block, C, Weight><<<unsigned(shape.batches * chunks * blocks), block, 0, executor.stream>>>(
      shape, bins, strips, unsigned(blocks), unsigned(chunks), dy, dx);
  return launched();
}

}  // namespace internal

template <class Weight, class Sum, class T>
Status sample_adjoint(Executor executor, const SampleAdjointShape& shape, const int32_t* bins, const Sum* positions,
                      const T* dy, T* dx) {
  using namespace internal;
  SampleBins<Sum> all(shape);
  if (!all.take(executor)) return small_workspace;
  if (Status status = order_by_bins(executor, all, shape.rank, bins, positions); !status.ok()) return status;
  constexpr int many = adjoint_many<Sum>, few = adjoint_few<Sum>, length = 2 * Weight::taps;
  // Where planes of `many` channels fit the first-level cache, a block has all of their elements, and positions may be
  // anywhere.
  constexpr int64_t cache = 224 * 1024, multiprocessors = 132;
  int64_t elements = shape.elements(), large_length = ceil_div(elements, adjoint_large_block);
  if (many * shape.points * int64_t(sizeof(T)) <= cache && shape.channels >= many && large_length >= length &&
      large_length <= shape.sizes[1] && shape.batches * (shape.channels / many) >= multiprocessors)
    return launch_adjoints<adjoint_large_block, many, Weight>(executor, shape, all, int32_t(large_length), dy, dx);
  // Elsewhere neighbors read what is near. Longer strips read less, if there are enough of them.
  auto are_enough = [&](int channels, int32_t length) {
    constexpr int64_t threads = 1 << 15;
    return shape.batches * ceil_div(shape.channels, channels) * SampleStrips(shape, length).count >= threads;
  };
  auto launch = [&](auto channels) {
    int32_t found = length;
    while (found > 1 && !are_enough(channels.value, found)) found /= 2;
    return launch_adjoints<adjoint_block, channels.value, Weight>(executor, shape, all, found, dy, dx);
  };
  if (shape.channels >= many && are_enough(many, Weight::taps)) return launch(std::integral_constant<int, many>());
  if (shape.channels >= few) return launch(std::integral_constant<int, few>());
  return launch(std::integral_constant<int, 1>());
}

}  // namespace baracuda
