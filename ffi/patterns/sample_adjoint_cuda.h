// The adjoint of the sample pattern on a CUDA grid: a thread has an element and some channels, whose sums are in
// registers, and reads each entry of the element's list once for these. Planes of dy are read where positions say; dx
// is written once, in order. Where planes are small, entries are first written in the order of lists, with their
// weights, and large blocks go through the elements of a few channels, whose planes stay in the first-level cache.
//
// A list that is much longer than its neighbors' is summed by a warp, and a very long one by the block: each lane has
// every so many entries, and lanes are added in order.
#pragma once

#include <algorithm>

#include "plane_spans_cuda.h"
#include "sample_adjoint.h"

namespace baracuda {
namespace internal {

inline constexpr int adjoint_block = 256, adjoint_wide_block = 512;
inline constexpr uint32_t most_of_lane = 64, most_of_warp = 8192;  // entries of a list

// Channels whose sums a thread has: many, or a few.
template <class T>
inline constexpr int adjoint_most = sizeof(T) == 8 ? 4 : 16;
template <class T>
inline constexpr int adjoint_many = sizeof(T) == 8 ? 4 : 8;
template <class T>
inline constexpr int adjoint_few = adjoint_many<T> / 2;

// Entries in the order of lists.
template <class Sum>
struct ListedEntries {
  const SampleEntry<Sum>* entries;
  const uint32_t* offsets;

  __device__ ListedEntries of(int64_t batch, const SampleAdjointShape& shape) const {
    return {entries + batch * shape.entries, offsets + batch * (shape.elements + 1)};
  }
  __device__ SampleEntry<Sum> at(uint32_t k) const { return entries[k]; }
};

template <class Sum, class Index>
__global__ void __launch_bounds__(adjoint_block)
    list_entries(SampleAdjointShape shape, SampleEntries<Sum, Index> all, unsigned tiles, SampleEntry<Sum>* to) {
  unsigned batch = blockIdx.x / tiles;
  int64_t k = int64_t(blockIdx.x - batch * tiles) * adjoint_block + threadIdx.x;
  if (k < shape.entries) to[batch * shape.entries + k] = all.of(batch, shape).at(uint32_t(k));
}

// The sums of C channels, from that of which `from` is the plane.
template <int C, class Sum, class T>
struct AdjointSums {
  const T* from;
  int64_t points;
  Sum sum[C] = {};

  // Every `step`-th entry of [k, end), two at once.
  template <class Entries>
  __device__ void add(const Entries& entries, uint32_t k, uint32_t end, uint32_t step) {
    constexpr int ahead = 2;
    for (; k < end; k += ahead * step) {
      SampleEntry<Sum> entry[ahead];
      T value[ahead][C];
      const T* at[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) entry[i] = entries.at(min(k + i * step, end - 1));
#pragma unroll
      for (int i = 0; i < ahead; ++i) at[i] = from + entry[i].point;
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int i = 0; i < ahead; ++i, at[i - 1] += points) value[i][c] = i == 0 || k + i * step < end ? *at[i] : T{};
#pragma unroll
      for (int i = 0; i < ahead; ++i)
#pragma unroll
        for (int c = 0; c < C; ++c)
          if (i == 0 || k + i * step < end) sum[c] += entry[i].weight * Sum(value[i][c]);
    }
  }
  __device__ void add_lanes() {
    __syncwarp();
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) sum[c] += __shfl_xor_sync(~0u, sum[c], lanes);
  }
  __device__ void write(T* to, int64_t elements) const {
#pragma unroll
    for (int c = 0; c < C; ++c, to += elements) *to = T(sum[c]);
  }
};

// A block has `each` tiles of elements, of C channels, of which there are at least as many.
template <int block, int C, class Sum, class Entries, class T>
__global__ void __launch_bounds__(block, 1024 / block)
    sample_adjoints_of(SampleAdjointShape shape, Entries all, unsigned spans, unsigned chunks, int64_t each,
                       const T* __restrict__ dy, T* __restrict__ dx) {
  constexpr int warps = block / 32;
  __shared__ Sum parts[warps][C];
  __shared__ uint32_t long_lists[warps], ends[block][2];
  unsigned planes = blockIdx.x / spans, span = blockIdx.x - planes * spans;
  // The last chunk has channels of the one before, where there are fewer left: their sums are the same.
  int64_t batch = planes / chunks, channel = min(int64_t(planes - batch * chunks) * C, shape.channels - C);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Entries entries = all.of(batch, shape);
  const AdjointSums<C, Sum, T> none{dy + (batch * shape.channels + channel) * shape.points, shape.points};
  T* to = dx + (batch * shape.channels + channel) * shape.elements;
  int64_t first = span * each * block, last = min(first + each * block, shape.elements);
  bool has_long = false;
  for (; first < last; first += block) {
    int64_t element = first + threadIdx.x;
    bool is_there = element < last;
    uint32_t begin = is_there ? entries.offsets[element] : 0, end = is_there ? entries.offsets[element + 1] : 0;
    bool is_of_lane = end - begin <= most_of_lane, is_long = end - begin > most_of_warp;
    if (is_there && is_of_lane) {
      auto mine = none;
      mine.add(entries, begin, end, 1);
      mine.write(to + element, shape.elements);
    }
    has_long = has_long || is_long;
    for (uint32_t left = __ballot_sync(~0u, !is_of_lane && !is_long); left; left &= left - 1) {
      int owner = __ffs(left) - 1;
      auto of_lane = none;
      of_lane.add(entries, __shfl_sync(~0u, begin, owner) + lane, __shfl_sync(~0u, end, owner), 32);
      of_lane.add_lanes();
      if (lane == owner) of_lane.write(to + element, shape.elements);
    }
  }
  if (!__syncthreads_or(has_long)) return;
  for (first = span * each * block; first < last; first += block) {
    int64_t element = first + threadIdx.x;
    bool is_there = element < last;
    uint32_t begin = is_there ? entries.offsets[element] : 0, end = is_there ? entries.offsets[element + 1] : 0;
    uint32_t are_long = __ballot_sync(~0u, end - begin > most_of_warp);
    if (lane == 0) long_lists[warp] = are_long;
    ends[threadIdx.x][0] = begin, ends[threadIdx.x][1] = end;
    __syncthreads();
    for (int w = 0; w < warps; ++w)
      for (uint32_t left = long_lists[w]; left; left &= left - 1) {
        int owner = w * 32 + __ffs(left) - 1;
        auto of_lane = none;
        of_lane.add(entries, ends[owner][0] + threadIdx.x, ends[owner][1], block);
        of_lane.add_lanes();
        if (lane == 0)
#pragma unroll
          for (int c = 0; c < C; ++c) parts[warp][c] = of_lane.sum[c];
        __syncthreads();
        if (int(threadIdx.x) == owner) {
          auto mine = none;
          for (int of_warp = 0; of_warp < warps; ++of_warp)
#pragma unroll
            for (int c = 0; c < C; ++c) mine.sum[c] += parts[of_warp][c];
          mine.write(to + element, shape.elements);
        }
        __syncthreads();
      }
    __syncthreads();  // lists are read
  }
}

template <int block, int C, class Sum, class Entries, class T>
Status launch_adjoints(const Executor& executor, const SampleAdjointShape& shape, const Entries& entries, int64_t spans,
                       int64_t each, const T* dy, T* dx) {
  int64_t chunks = ceil_div(shape.channels, C), blocks = shape.batches * chunks * spans;
  if (blocks >= int64_t(1) << 31) return {"sample_adjoint: there are too many elements"};
  sample_adjoints_of<block, C, Sum><<<unsigned(blocks), block, 0, executor.stream>>>(shape, entries, unsigned(spans),
                                                                                     unsigned(chunks), each, dy, dx);
  return launched();
}

}  // namespace internal

template <class Sum, class Index, class T>
Status sample_adjoint(Executor executor, const SampleAdjointShape& shape, const SampleEntries<Sum, Index>& entries,
                      const T* dy, T* dx) {
  using namespace internal;
  constexpr int most = adjoint_most<T>, many = adjoint_many<T>, few = adjoint_few<T>;
  int64_t bytes = shape.points * int64_t(sizeof(T)), tiles = ceil_div(shape.elements, plane_block);
  // Where `many` planes fit the first-level cache, or a few nearly do and are nearly all, positions may be anywhere. Of
  // long lists the entries would take its place.
  constexpr int64_t most_of_many = 224 * 1024 / many, most_of_few = 128 * 1024, most_of_point = 8;
  bool are_many = bytes <= most_of_many && shape.channels > many,
       are_few = bytes <= most_of_few && shape.channels > few && shape.channels < most;
  if ((are_many || are_few) && shape.entries <= most_of_point * shape.points &&
      PlaneSpans::are_enough(shape.batches, shape.channels, tiles, are_many ? many : few)) {
    auto* listed = executor.scratch<SampleEntry<Sum>>(shape.batches * shape.entries);
    if (!listed) return small_workspace;
    if (int64_t blocks = ceil_div(shape.entries, adjoint_block); blocks > 0) {
      if (shape.batches * blocks >= int64_t(1) << 31) return {"sample_adjoint: there are too many entries"};
      list_entries<<<unsigned(shape.batches * blocks), adjoint_block, 0, executor.stream>>>(shape, entries,
                                                                                            unsigned(blocks), listed);
      if (Status status = launched(); !status.ok()) return status;
    }
    int together = are_many ? many : few;
    PlaneSpans spans(shape.batches, shape.channels, tiles, bytes, together, together);
    ListedEntries<Sum> ordered{listed, entries.offsets};
    if (are_many)
      return launch_adjoints<plane_block, many, Sum>(executor, shape, ordered, spans.spans, spans.each, dy, dx);
    return launch_adjoints<plane_block, few, Sum>(executor, shape, ordered, spans.spans, spans.each, dy, dx);
  }
  // Elsewhere neighbors read what is near, and more channels at once read entries less often.
  auto are_enough = [&](int together, int block, int64_t blocks) {
    int64_t tiles_of_block = ceil_div(shape.elements, block);
    return shape.channels >= together && shape.batches * (shape.channels / together) * tiles_of_block >= blocks;
  };
  if (are_enough(most, adjoint_wide_block, 528))
    return launch_adjoints<adjoint_wide_block, most, Sum>(executor, shape, entries,
                                                          ceil_div(shape.elements, adjoint_wide_block), 1, dy, dx);
  tiles = ceil_div(shape.elements, adjoint_block);
  if (are_enough(many, adjoint_block, 264))
    return launch_adjoints<adjoint_block, many, Sum>(executor, shape, entries, tiles, 1, dy, dx);
  if (shape.channels >= few)
    return launch_adjoints<adjoint_block, few, Sum>(executor, shape, entries, tiles, 1, dy, dx);
  return launch_adjoints<adjoint_block, 1, Sum>(executor, shape, entries, tiles, 1, dy, dx);
}

}  // namespace baracuda
