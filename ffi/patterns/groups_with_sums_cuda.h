// The groups pattern with sums of channels, on a CUDA grid: two sums of each channel of each row, a group of channels,
// from which the row's come, and then its elements. Rows are held and cut as in groups_cuda.h. The sums of channels are
// written, for each cut of a channel, and added over the batch in order.
#pragma once

#include "groups_parts_cuda.h"
#include "rows_with_sums_cuda.h"

namespace baracuda {
namespace internal {

template <int V, int held, class Functor>
__device__ void read_part_with_dy(const Functor& functor, const PartOfRow<V, held>& of,
                                  typename Functor::template Elements<V> (&in)[held]) {
  of.each([&](int i, int, int64_t element) { in[i] = functor.template read<V>(element); });
}

template <int V, int held, class Functor>
__device__ void write_gradient(const Functor& functor, const PartOfRow<V, held>& of,
                               const typename Functor::template Elements<V> (&in)[held],
                               const RowMoments<typename Functor::Wide>& row,
                               const typename Functor::template State<1>& sums) {
  auto means = functor.means(sums);
  of.each([&](int i, int channel, int64_t element) {
    functor.write(element, in[i], row, functor.factor(of.parameter + channel), means);
  });
}

// The sums of channels: of element n of the batch and a cut, `found.of(n * cuts + cut, which)`. With `writes` dx too.
// The bounds are as in groups_cuda.h, and for the same reason: 119 us instead of 188.
template <int V, int held, class Functor>
__global__ void __launch_bounds__(groups_most_threads)
    sum_parts(Functor functor, GroupParts parts, BlockSums<typename Functor::Wide> found, bool writes) {
  using State = typename Functor::template State<1>;
  __shared__ State channels[groups_most_threads / 4 * held], warps[groups_most_threads / 32];
  __shared__ ClusterStates<State> states;
  const GroupShape& shape = functor.shape;
  PartOfRow<V, held> of(shape, parts, blockIdx.x);
  typename Functor::template Elements<V> in[held];
  read_part_with_dy(functor, of, in);
  auto row = functor.row(of.row);

  // Of a channel, for each warp that has some of it.
  int lanes = min(parts.lanes, 32), per_team = parts.lanes / lanes, thread = thread_of_block();
  State sum;
  sum.clear();
  of.each(
      [&](int i, int, int64_t) {
#pragma unroll
        for (int k = 0; k < V; ++k)
          functor.add(sum.first[0], sum.second[0], typename Functor::Wide(in[i].x.lane[k]),
                      typename Functor::Wide(in[i].dy.lane[k]), row);
      },
      [&](int slot) {
        sum = sum_of_lanes(sum, lanes);
        if (thread % lanes == 0) channels[thread / lanes * held + slot] = sum;
        sum.clear();
      });
  __syncthreads();
  int64_t element = of.row / shape.groups;
  int64_t position = (of.row - element * shape.groups) * shape.channels + of.first_channel;
  int64_t block = element * parts.cuts + of.cut;
  for (int channel = thread; channel < of.count; channel += blockDim.x * blockDim.y) {
    const State* of_channel = channels + channel % parts.teams * per_team * held + channel / parts.teams;
    State s = of_channel[0];
    for (int warp = 1; warp < per_team; ++warp) s.add(of_channel[warp * held]);
    found.of(block, 0)[position + channel] = s.first[0];
    found.of(block, 1)[position + channel] = s.second[0];
    sum.add(functor.weighted(s, functor.factor(of.parameter + channel)));
  }
  if (!writes) return;
  if constexpr (is_half<typename Functor::Element>) as_read_anew(in);
  sum = sum_of_block(sum, warps);
  if (parts.parts > 1) sum = sum_of_cluster(sum, states, parts.parts);
  write_gradient(functor, of, in, row, sum);
  if (parts.parts > 1) leave_cluster();
}

// The sums of a row from those of its channels, and a part of dx.
template <int V, int held, class Functor>
__global__ void __launch_bounds__(groups_most_threads, 1)
    write_by_sums(Functor functor, GroupParts parts, BlockSums<typename Functor::Wide> found) {
  using State = typename Functor::template State<1>;
  __shared__ State warps[groups_most_threads / 32];
  const GroupShape& shape = functor.shape;
  PartOfRow<V, held> of(shape, parts, gridDim.x - 1 - int64_t(blockIdx.x));
  typename Functor::template Elements<V> in[held];
  read_part_with_dy(functor, of, in);
  int64_t element = of.row / shape.groups, position = (of.row - element * shape.groups) * shape.channels;
  int64_t parameter = shape.parameter(of.row), count = shape.channels * parts.cuts;
  State sum;
  sum.clear();
  for (int64_t k = thread_of_block(); k < count; k += blockDim.x * blockDim.y) {
    int64_t cut = k / shape.channels, channel = k - cut * shape.channels, block = element * parts.cuts + cut;
    State s;
    s.first[0] = found.of(block, 0)[position + channel], s.second[0] = found.of(block, 1)[position + channel];
    sum.add(functor.weighted(s, functor.factor(parameter + channel)));
  }
  write_gradient(functor, of, in, functor.row(of.row), sum_of_block(sum, warps));
}

template <int V>
inline constexpr int groups_held_with_sums = V == 1 ? 8 : 4;

template <int V, int held, class Functor>
Status run_groups_with_sums_by(Executor executor, const Functor& functor, const GroupParts& parts, bool is_whole,
                               ColumnSums<typename Functor::Element> of_weight,
                               ColumnSums<typename Functor::Element> of_bias) {
  using T = typename Functor::Element;
  using Wide = typename Functor::Wide;
  const GroupShape& shape = functor.shape;
  int64_t channels = shape.groups * shape.channels;
  Wide* memory = executor.scratch<Wide>(shape.batch * parts.cuts * 2 * channels);
  if (!memory) return small_workspace;
  BlockSums<Wide> found{memory, 2, channels};
  Status status =
      launch_parts(executor, sum_parts<V, held, Functor>, shape, parts, is_whole, functor, parts, found, is_whole);
  if (!status.ok()) return status;
  if (!is_whole) {
    status = launch_parts(executor, write_by_sums<V, held, Functor>, shape, parts, false, functor, parts, found);
    if (!status.ok()) return status;
  }
  int64_t tiles = ceil_div(channels, 32), batches = shape.batch / shape.of_weight;
  add_parts<T><<<unsigned(batches * 2 * tiles), dim3(32, part_warps), 0, executor.stream>>>(
      found, int(shape.of_weight * parts.cuts), tiles, of_weight, of_bias);
  return launched();
}

}  // namespace internal

// The workspace has room for two sums of each cut of each channel of each element of the batch.
template <class Functor, class T = typename Functor::Element>
Status run_groups_with_sums(const Executor& executor, const Functor& functor, ColumnSums<T> of_weight,
                            ColumnSums<T> of_bias) {
  if (functor.shape.rows() == 0) return {};
  return internal::with_group_width<T>(functor.shape.space, [&](auto width) {
    constexpr int V = width(), held = internal::groups_held_with_sums<V>;
    bool is_whole, clusters = internal::has_clusters(internal::sum_parts<V, held, Functor>);
    auto parts = internal::plan_group_parts(functor.shape, V, held, clusters, is_whole);
    return internal::run_groups_with_sums_by<V, held>(executor, functor, parts, is_whole, of_weight, of_bias);
  });
}

}  // namespace baracuda
