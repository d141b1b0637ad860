// The adjoint of the sample pattern on a CUDA grid: a thread has an element and a few channels, whose sums are in
// registers, and reads each entry of the element's list once for these. Planes of dy are read where positions say,
// which for neighboring elements are near each other; dx is written once, in order. A list that is much longer than its
// neighbors' is summed by a warp, and a very long one by the block: each lane has every so many entries, and lanes are
// added in order.
#pragma once

#include <algorithm>

#include "sample_adjoint.h"

namespace baracuda {
namespace internal {

inline constexpr int adjoint_block = 256, adjoint_warps = adjoint_block / 32;
inline constexpr uint32_t most_of_lane = 64, most_of_warp = 8192;  // entries of a list

// The sums of C channels; the last plane is read again for channels that are not there.
template <int C, class Sum, class T>
struct AdjointSums {
  Sum sum[C] = {};

  template <class Index>
  __device__ void add(const typename SampleEntries<Sum, Index>::Entry& entry, const T* from, int64_t points, int last) {
    T value[C];
#pragma unroll
    for (int c = 0; c < C; ++c) value[c] = from[min(c, last) * points + entry.point];
#pragma unroll
    for (int c = 0; c < C; ++c) sum[c] += entry.weight * Sum(value[c]);
  }
  // Every `step`-th entry of [k, end).
  template <class Index>
  __device__ void add_all(const SampleEntries<Sum, Index>& entries, uint32_t k, uint32_t end, uint32_t step,
                          const T* from, int64_t points, int last) {
    if (k >= end) return;
    auto next = entries.at(k);
    for (;;) {
      auto entry = next;
      bool is_last = end - k <= step;
      k += step;
      if (!is_last) next = entries.at(k);  // on its way while dy is read
      add<Index>(entry, from, points, last);
      if (is_last) return;
    }
  }
  __device__ void add_lanes() {
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) sum[c] += __shfl_xor_sync(~0u, sum[c], lanes);
  }
};

template <int C, class Sum, class Index, class T>
__global__ void __launch_bounds__(adjoint_block)
    sample_adjoints_of(SampleAdjointShape shape, SampleEntries<Sum, Index> all, unsigned tiles, unsigned chunks,
                       const T* __restrict__ dy, T* __restrict__ dx) {
  __shared__ Sum parts[adjoint_warps][C];
  __shared__ uint32_t long_lists[adjoint_warps], ends[adjoint_block][2];
  unsigned plane = blockIdx.x / tiles, tile = blockIdx.x - plane * tiles;  // of C channels
  int64_t batch = plane / chunks, channel = int64_t(plane - batch * chunks) * C;
  int64_t element = int64_t(tile) * adjoint_block + threadIdx.x;
  int last = int(min(int64_t(C), shape.channels - channel)) - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const T* from = dy + (batch * shape.channels + channel) * shape.points;
  SampleEntries<Sum, Index> entries = all.of(batch, shape);
  bool is_there = element < shape.elements;
  uint32_t begin = is_there ? entries.offsets[element] : 0, end = is_there ? entries.offsets[element + 1] : 0;

  AdjointSums<C, Sum, T> mine;
  if (end - begin <= most_of_lane) mine.add_all(entries, begin, end, 1, from, shape.points, last);
  bool is_of_warp = end - begin > most_of_lane && end - begin <= most_of_warp;
  for (uint32_t left = __ballot_sync(~0u, is_of_warp); left; left &= left - 1) {
    int owner = __ffs(left) - 1;
    AdjointSums<C, Sum, T> of_lane;
    of_lane.add_all(entries, __shfl_sync(~0u, begin, owner) + lane, __shfl_sync(~0u, end, owner), 32, from,
                    shape.points, last);
    __syncwarp();
    of_lane.add_lanes();
    if (lane == owner) mine = of_lane;
  }
  if (__syncthreads_or(end - begin > most_of_warp)) {
    uint32_t are_long = __ballot_sync(~0u, end - begin > most_of_warp);
    if (lane == 0) long_lists[warp] = are_long;
    ends[threadIdx.x][0] = begin, ends[threadIdx.x][1] = end;
    __syncthreads();
    for (int w = 0; w < adjoint_warps; ++w)
      for (uint32_t left = long_lists[w]; left; left &= left - 1) {
        int owner = w * 32 + __ffs(left) - 1;
        AdjointSums<C, Sum, T> of_lane;
        of_lane.add_all(entries, ends[owner][0] + threadIdx.x, ends[owner][1], adjoint_block, from, shape.points, last);
        __syncwarp();
        of_lane.add_lanes();
        if (lane == 0)
#pragma unroll
          for (int c = 0; c < C; ++c) parts[warp][c] = of_lane.sum[c];
        __syncthreads();
        if (int(threadIdx.x) == owner)
          for (int of_warp = 0; of_warp < adjoint_warps; ++of_warp)
#pragma unroll
            for (int c = 0; c < C; ++c) mine.sum[c] += parts[of_warp][c];
        __syncthreads();
      }
  }
  if (!is_there) return;
  T* to = dx + (batch * shape.channels + channel) * shape.elements + element;
#pragma unroll
  for (int c = 0; c < C; ++c)
    if (c <= last) to[c * shape.elements] = T(mine.sum[c]);
}

}  // namespace internal

template <class Sum, class Index, class T>
Status sample_adjoint(const Executor& executor, const SampleAdjointShape& shape,
                      const SampleEntries<Sum, Index>& entries, const T* dy, T* dx) {
  auto launch = [&](auto together) {
    constexpr int C = together.value;
    int64_t tiles = ceil_div(shape.elements, internal::adjoint_block), chunks = ceil_div(shape.channels, C);
    int64_t blocks = shape.batches * chunks * tiles;
    if (blocks >= int64_t(1) << 31) return Status{"sample_adjoint: too many elements"};
    internal::sample_adjoints_of<C><<<unsigned(blocks), internal::adjoint_block, 0, executor.stream>>>(
        shape, entries, unsigned(tiles), unsigned(chunks), dy, dx);
    return launched();
  };
  if (shape.channels == 1) return launch(std::integral_constant<int, 1>());
  return launch(std::integral_constant<int, 8>());
}

}  // namespace baracuda
