// The groups pattern on a CUDA grid: the moments of each row, a group of channels, and then its elements. A row stays
// in the shared memory of a block, or of the blocks of a cluster, so that it is read once. Of short rows a block has
// several. A long one is cut into parts whose moments another kernel merges, and which it reads again, the last ones
// first: these are in the cache.
#pragma once

#include "groups_parts_cuda.h"

namespace baracuda {
namespace internal {

// What is read of channels before their rows are known, while these are copied.
template <int V, bool inside, class Functor>
__device__ void read_channels(const Functor& functor, const PartOfRows<V, inside>& of, const GroupParts& parts,
                              typename Functor::ChannelInRow* channels) {
  of.each_channel(functor.shape, parts,
                  [&](int channel, int, int64_t parameter) { channels[channel].channel = functor.channel(parameter); });
}

template <int V, bool inside, class Functor>
__device__ void write_normalized(const Functor& functor, const PartOfRows<V, inside>& of, const GroupParts& parts,
                                 const typename Functor::Element* x, const typename Functor::ChannelInRow* channels) {
  write_part(of, parts, channels, [&](auto width, int k, int left, const auto& here, const auto& next) {
    functor.write_in_two(of.first + k, load<width()>(x + k), left, here, next);
  });
}

// Of a part of one row, whose moments all threads know.
template <int V, bool inside, class Functor>
__device__ void write_row(const Functor& functor, const PartOfRows<V, inside>& of, const GroupParts& parts,
                          const typename Functor::Element* x, const RowMoments<typename Functor::Wide>& row,
                          typename Functor::ChannelInRow* channels) {
  if (of.part == 0 && thread_of_block() == 0) functor.finish(of.row, row);
  for (int channel = thread_of_block(); channel < of.channels; channel += int(blockDim.x)) channels[channel].row = row;
  __syncthreads();
  write_normalized(functor, of, parts, x, channels);
}

// The moments of the rows of a block, each by some lanes.
template <int V, bool inside, class Functor>
__device__ void find_moments_of_rows(const Functor& functor, const PartOfRows<V, inside>& of, const GroupParts& parts,
                                     const typename Functor::Element* x, typename Functor::ChannelInRow* channels) {
  using Wide = typename Functor::Wide;
  int lanes = parts.lanes, thread = thread_of_block(), lane = thread % lanes, columns = of.channels * of.length;
  bool by_vectors = of.head == 0 && columns % V == 0;
  for (int first = 0; first < of.rows; first += int(blockDim.x) / lanes) {
    int row = first + thread / lanes, begin = row * columns, end = row < of.rows ? begin + columns : begin;
    RowSum<Wide, 1> sum;
    sum.clear();
    each_of_lane<V>(begin, end, lane, lanes, by_vectors, [&](auto width, int k) {
      auto values = load<width()>(x + k);
#pragma unroll
      for (int i = 0; i < width(); ++i) sum.lane[0] += Wide(values.lane[i]);
    });
    Wide mean = sum_of_lanes(sum, lanes).lane[0] / Wide(columns);
    sum.clear();
    each_of_lane<V>(begin, end, lane, lanes, by_vectors, [&](auto width, int k) {
      auto values = load<width()>(x + k);
#pragma unroll
      for (int i = 0; i < width(); ++i) {
        Wide difference = Wide(values.lane[i]) - mean;
        sum.lane[0] += difference * difference;
      }
    });
    sum = sum_of_lanes(sum, lanes);
    if (row >= of.rows) continue;
    auto moments = functor.row({Wide(columns), mean, sum.lane[0]});
    if (lane == 0) functor.finish(of.row + row, moments);
    for (int channel = lane; channel < of.channels; channel += lanes)
      channels[row * of.channels + channel].row = moments;
  }
}

// Of a part of a row.
template <int V, bool inside, class Functor, class Wide = typename Functor::Wide>
__device__ Moments<Wide> moments_of_part(const PartOfRows<V, inside>& of, const typename Functor::Element* x,
                                         RowSum<Wide, 1> (&sums)[2][groups_most_threads / 32]) {
  Wide count = Wide(of.elements);
  RowSum<Wide, 1> sum;
  sum.clear();
  of.each([&](auto width, int k) {
    auto values = load<width()>(x + k);
#pragma unroll
    for (int i = 0; i < width(); ++i) sum.lane[0] += Wide(values.lane[i]);
  });
  Wide mean = sum_of_block(sum, sums[0]).lane[0] / (count > 0 ? count : Wide(1));
  sum.clear();
  of.each([&](auto width, int k) {
    auto values = load<width()>(x + k);
#pragma unroll
    for (int i = 0; i < width(); ++i) {
      Wide difference = Wide(values.lane[i]) - mean;
      sum.lane[0] += difference * difference;
    }
  });
  return {count, mean, sum_of_block(sum, sums[1]).lane[0]};
}

// Writes y, or where `found` is not null the moments of parts alone.
template <int V, bool inside, class Functor>
__global__ void __launch_bounds__(groups_most_threads, 2)
    normalize_parts(const __grid_constant__ Functor functor, const __grid_constant__ GroupParts parts,
                    Moments<typename Functor::Wide>* found) {
  using T = typename Functor::Element;
  using Wide = typename Functor::Wide;
  extern __shared__ __align__(16) char memory[];
  __shared__ RowSum<Wide, 1> sums[2][groups_most_threads / 32];
  __shared__ ClusterStates<Moments<Wide>> states;
  PartOfRows<V, inside> of(functor.shape, parts, blockIdx.x);
  T* x = of.template values<T>(memory);
  auto* channels = reinterpret_cast<typename Functor::ChannelInRow*>(of.template after<T>(memory, parts.elements));
  copy_part(of, functor.x, x);
  read_channels(functor, of, parts, channels);
  wait_for_copies();
  if (parts.rows > 1) {
    find_moments_of_rows(functor, of, parts, x, channels);
    __syncthreads();
    write_normalized(functor, of, parts, x, channels);
    return;
  }
  auto moments = moments_of_part<V, inside, Functor>(of, x, sums);
  if (found) {
    if (thread_of_block() == 0) found[blockIdx.x] = moments;
    return;
  }
  if (parts.parts > 1) moments = sum_of_cluster(moments, states, parts.parts);
  write_row(functor, of, parts, x, functor.row(moments), channels);
  if (parts.parts > 1) leave_cluster();
}

// The moments of a row from those of its parts, and a part of y.
template <int V, bool inside, class Functor>
__global__ void __launch_bounds__(groups_most_threads, 2)
    normalize_by_moments(const __grid_constant__ Functor functor, const __grid_constant__ GroupParts parts,
                         const Moments<typename Functor::Wide>* found) {
  using T = typename Functor::Element;
  using Wide = typename Functor::Wide;
  extern __shared__ __align__(16) char memory[];
  __shared__ Moments<Wide> shared[33];
  PartOfRows<V, inside> of(functor.shape, parts, gridDim.x - 1 - int64_t(blockIdx.x));
  T* x = of.template values<T>(memory);
  auto* channels = reinterpret_cast<typename Functor::ChannelInRow*>(of.template after<T>(memory, parts.elements));
  copy_part(of, functor.x, x);
  read_channels(functor, of, parts, channels);
  int thread = thread_of_block();
  if (thread < 32) {
    Moments<Wide> moments{0, 0, 0};
    for (int part = thread; part < parts.parts; part += 32) moments.add(found[of.row * parts.parts + part]);
    shared[thread] = moments;
    __syncwarp();
    if (thread == 0) {
      for (int lane = 1; lane < 32; ++lane) moments.add(shared[lane]);
      shared[32] = moments;
    }
  }
  wait_for_copies();
  write_row(functor, of, parts, x, functor.row(shared[32]), channels);
}

template <int V, bool inside, class Functor>
Status run_groups_by(Executor executor, const Functor& functor) {
  using Wide = typename Functor::Wide;
  constexpr GroupBytes bytes{int(sizeof(typename Functor::Element)), 0, int(sizeof(typename Functor::ChannelInRow)), 0};
  int64_t most = 0;
  if (Status status = most_bytes_of_part(most); !status.ok()) return status;
  bool is_whole, clusters = has_clusters(normalize_parts<V, inside, Functor>);
  auto parts = plan_group_parts(functor.shape, V, bytes, most, clusters, is_whole);
  if (is_whole)
    return launch_parts(executor, normalize_parts<V, inside, Functor>, functor.shape, parts, bytes, true, functor,
                        parts, nullptr);
  auto* found = executor.scratch<Moments<Wide>>(functor.shape.rows() * parts.parts);
  if (!found) return small_workspace;
  Status status = launch_parts(executor, normalize_parts<V, inside, Functor>, functor.shape, parts, bytes, false,
                               functor, parts, found);
  if (!status.ok()) return status;
  return launch_parts(executor, normalize_by_moments<V, inside, Functor>, functor.shape, parts, bytes, false, functor,
                      parts, found);
}

}  // namespace internal

// The workspace has room for the moments of the parts of all rows.
template <class Functor>
Status run_groups(const Executor& executor, const Functor& functor) {
  if (functor.shape.rows() == 0) return {};
  return internal::with_group_width<typename Functor::Element>(functor.shape.space, [&](auto width, auto inside) {
    return internal::run_groups_by<width(), inside()>(executor, functor);
  });
}

}  // namespace baracuda
