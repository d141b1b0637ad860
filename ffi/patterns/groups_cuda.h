// The groups pattern on a CUDA grid: the moments of each row, a group of channels, and then its elements. A row stays
// in the registers of a block, or of the blocks of a cluster, so that it is read once. A longer one is cut into parts
// whose moments another kernel merges, and which it reads again, the last ones first: these are in the cache.
#pragma once

#include "groups_parts_cuda.h"

namespace baracuda {
namespace internal {

template <int V, int held, class T>
__device__ void read_part(const T* x, const PartOfRow<V, held>& of, Vector<T, V> (&values)[held]) {
  of.each([&](int i, int, int64_t element) { values[i] = load<V>(x + element); });
}

template <int V, int held, class Functor>
__device__ void write_part(const Functor& functor, const PartOfRow<V, held>& of,
                           const Vector<typename Functor::Element, V> (&values)[held],
                           const Moments<typename Functor::Wide>& moments) {
  auto row = functor.row(moments);
  if (of.is_first()) functor.finish(of.row, row);
  of.each([&](int i, int channel, int64_t element) {
    functor.write(element, values[i], row, functor.channel(of.parameter + channel));
  });
}

// Writes y, or where `found` is not null the moments of parts alone. Without a smallest number of blocks a lane has 64
// registers. With one of 1 it gets up to 90: [32, 256, 3136] in 32 groups takes 100 us instead of 73 in float32. Single
// elements of 16 bits need these.
template <int V, int held, class Functor>
__global__ void __launch_bounds__(groups_most_threads, V == 1 && sizeof(typename Functor::Element) == 2)
    normalize_parts(Functor functor, GroupParts parts, Moments<typename Functor::Wide>* found) {
  using T = typename Functor::Element;
  using Wide = typename Functor::Wide;
  using Sum = RowSum<Wide, 1>;
  __shared__ Sum sums[2][groups_most_threads / 32];
  __shared__ ClusterStates<Moments<Wide>> states;
  PartOfRow<V, held> of(functor.shape, parts, blockIdx.x);
  Vector<T, V> x[held];
  read_part(functor.x, of, x);
  Wide count = Wide(of.elements());
  Sum sum;
  sum.clear();
  of.each([&](int i, int, int64_t) {
#pragma unroll
    for (int k = 0; k < V; ++k) sum.lane[0] += Wide(x[i].lane[k]);
  });
  Wide mean = sum_of_block(sum, sums[0]).lane[0] / (count > 0 ? count : Wide(1));
  if constexpr (is_half<T>) as_read_anew(x);
  sum.clear();
  of.each([&](int i, int, int64_t) {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      Wide difference = Wide(x[i].lane[k]) - mean;
      sum.lane[0] += difference * difference;
    }
  });
  Moments<Wide> moments{count, mean, sum_of_block(sum, sums[1]).lane[0]};
  if (found) {
    if (thread_of_block() == 0) found[blockIdx.x] = moments;
    return;
  }
  if constexpr (is_half<T>) as_read_anew(x);
  if (parts.parts > 1) moments = sum_of_cluster(moments, states, parts.parts);
  write_part(functor, of, x, moments);
  if (parts.parts > 1) leave_cluster();
}

// The moments of a row from those of its parts, and a part of y.
template <int V, int held, class Functor>
__global__ void __launch_bounds__(groups_most_threads, 1)
    normalize_by_moments(Functor functor, GroupParts parts, const Moments<typename Functor::Wide>* found) {
  using Wide = typename Functor::Wide;
  __shared__ Moments<Wide> shared[33];
  PartOfRow<V, held> of(functor.shape, parts, gridDim.x - 1 - int64_t(blockIdx.x));
  Vector<typename Functor::Element, V> x[held];
  read_part(functor.x, of, x);
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
  __syncthreads();
  write_part(functor, of, x, shared[32]);
}

// Vectors that a lane has registers for.
template <int V>
inline constexpr int groups_held = V == 1 ? 16 : 8;

template <int V, int held, class Functor>
Status run_groups_by(Executor executor, const Functor& functor, const GroupParts& parts, bool is_whole) {
  using Wide = typename Functor::Wide;
  if (is_whole)
    return launch_parts(executor, normalize_parts<V, held, Functor>, functor.shape, parts, true, functor, parts,
                        nullptr);
  auto* found = executor.scratch<Moments<Wide>>(functor.shape.rows() * parts.parts);
  if (!found) return small_workspace;
  Status status =
      launch_parts(executor, normalize_parts<V, held, Functor>, functor.shape, parts, false, functor, parts, found);
  if (!status.ok()) return status;
  return launch_parts(executor, normalize_by_moments<V, held, Functor>, functor.shape, parts, false, functor, parts,
                      found);
}

}  // namespace internal

// The workspace has room for the moments of the parts of all rows.
template <class Functor>
Status run_groups(const Executor& executor, const Functor& functor) {
  if (functor.shape.rows() == 0) return {};
  return internal::with_group_width<typename Functor::Element>(functor.shape.space, [&](auto width) {
    constexpr int V = width(), held = internal::groups_held<V>;
    bool is_whole, clusters = internal::has_clusters(internal::normalize_parts<V, held, Functor>);
    auto parts = internal::plan_group_parts(functor.shape, V, held, clusters, is_whole);
    return internal::run_groups_by<V, held>(executor, functor, parts, is_whole);
  });
}

}  // namespace baracuda
