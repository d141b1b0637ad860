// The groups pattern with sums of channels, on a CUDA grid: two sums of each channel of each row, a group of channels,
// from which the row's come, and then its elements. Rows are cut as in groups_cuda.h, and both x and dy are in shared
// memory. The sums of channels are written, for each cut of a channel, and added over the batch in order.
#pragma once

#include "groups_parts_cuda.h"
#include "rows_with_sums_cuda.h"

namespace baracuda {
namespace internal {

// x and dy of a part in shared memory, what is known of its channels, and of a row the position of the sums of the
// first.
template <int V, bool inside, class Functor>
struct HeldGroups {
  using T = typename Functor::Element;
  using Channel = typename Functor::ChannelInRow;
  PartOfRows<V, inside> of;
  T *x, *dy;
  Channel* channels;
  int64_t* sums;
  char* after;

  __device__ HeldGroups(const Functor& functor, const GroupParts& parts, int64_t block, char* memory)
      : of(functor.shape, parts, block) {
    x = of.template values<T>(memory), memory = of.template after<T>(memory, parts.elements);
    dy = of.template values<T>(memory), memory = of.template after<T>(memory, parts.elements);
    channels = reinterpret_cast<Channel*>(memory);
    sums = reinterpret_cast<int64_t*>(channels + parts.rows * parts.channels);
    after = reinterpret_cast<char*>(sums + (parts.rows + 1) / 2 * 2);
    copy_part(of, functor.x, x), copy_part(of, functor.dy, dy);
    const GroupShape& shape = functor.shape;
    for (int k = thread_of_block(); k < of.rows; k += int(blockDim.x)) {
      int64_t row = of.row + k, element = row / shape.groups, block_of_sums = element * parts.cuts + of.cut;
      int64_t position = (row - element * shape.groups) * shape.channels + of.first_channel;
      sums[k] = block_of_sums * 2 * shape.groups * shape.channels + position;
    }
    of.each_channel(shape, parts, [&](int channel, int row, int64_t parameter) {
      channels[channel].row = functor.row(of.row + row), channels[channel].factor = functor.factor(parameter);
    });
    wait_for_copies();
  }
  template <int W>
  __device__ typename Functor::template Elements<W> read(int k) const {
    return {load<W>(x + k), load<W>(dy + k)};
  }
  __device__ void write(const Functor& functor, const GroupParts& parts) const {
    write_part(of, parts, channels, [&](auto width, int k, int left, const auto& here, const auto& next) {
      functor.write_in_two(of.first + k, read<width()>(k), left, here, next);
    });
  }
  // Of a part of one row, whose sums all threads know.
  __device__ void write_row(const Functor& functor, const GroupParts& parts,
                            const typename Functor::template State<1>& sum) const {
    auto means = functor.means(sum);
    for (int channel = thread_of_block(); channel < of.channels; channel += int(blockDim.x))
      channels[channel].means = means;
    __syncthreads();
    write(functor, parts);
  }
};

// The sums of channels: of element n of the batch and a cut, `found.of(n * cuts + cut, which)`. With `writes` dx too.
template <int V, bool inside, class Functor>
__global__ void __launch_bounds__(groups_most_threads, 2)
    sum_parts(const __grid_constant__ Functor functor, const __grid_constant__ GroupParts parts,
              BlockSums<typename Functor::Wide> found, bool writes) {
  using Wide = typename Functor::Wide;
  using State = typename Functor::template State<1>;
  extern __shared__ __align__(16) char memory[];
  __shared__ State warps[groups_most_threads / 32];
  __shared__ ClusterStates<State> states;
  HeldGroups<V, inside, Functor> held(functor, parts, blockIdx.x, memory);
  const PartOfRows<V, inside>& of = held.of;
  State* teams = reinterpret_cast<State*>(held.after);
  int thread = thread_of_block(), threads = int(blockDim.x), channels = of.rows * of.channels;

  int lanes = parts.of_channel, lane = thread % lanes, each = parts.teams_of_channel;
  for (int first = 0; first < channels * each; first += threads / lanes) {
    int team = first + thread / lanes, channel = each == 1 ? team : team / each, part = team - channel * each;
    State sum;
    sum.clear();
    if (channel < channels) {
      auto row = held.channels[channel].row;
      int begin = channel * of.length;
      each_of_lane<V>(begin, begin + of.length, part * lanes + lane, each * lanes, inside, [&](auto width, int k) {
        auto in = held.template read<width()>(k);
#pragma unroll
        for (int i = 0; i < width(); ++i)
          functor.add(sum.first[0], sum.second[0], Wide(in.x.lane[i]), Wide(in.dy.lane[i]), row);
      });
    }
    sum = sum_of_lanes(sum, lanes);
    if (lane == 0 && channel < channels) teams[team] = sum;
  }
  __syncthreads();

  // The channel's, and what it adds to its row's, which the thread keeps, or where it was found.
  State sum;
  sum.clear();
  for (int channel = thread; channel < channels; channel += threads) {
    State s = teams[channel * each];
    for (int team = 1; team < each; ++team) s.add(teams[channel * each + team]);
    int row = parts.rows > 1 ? parts.by_channels.quotient(channel) : 0, in_row = channel - row * parts.channels;
    Wide* to = found.all + held.sums[row] + in_row;
    to[0] = s.first[0], to[found.columns] = s.second[0];
    s = functor.weighted(s, held.channels[channel].factor);
    teams[channel * each] = s, sum.add(s);
  }
  if (!writes) return;
  if (parts.rows > 1) {
    __syncthreads();
    lanes = parts.lanes, lane = thread % lanes;
    for (int first = 0; first < of.rows; first += threads / lanes) {
      int row = first + thread / lanes;
      sum.clear();
      if (row < of.rows)
        for (int channel = lane; channel < of.channels; channel += lanes)
          sum.add(teams[(row * of.channels + channel) * each]);
      sum = sum_of_lanes(sum, lanes);
      if (row >= of.rows) continue;
      auto means = functor.means(sum);
      for (int channel = lane; channel < of.channels; channel += lanes)
        held.channels[row * of.channels + channel].means = means;
    }
    __syncthreads();
    held.write(functor, parts);
    return;
  }
  sum = sum_of_block(sum, warps);
  if (parts.parts > 1) sum = sum_of_cluster(sum, states, parts.parts);
  held.write_row(functor, parts, sum);
  if (parts.parts > 1) leave_cluster();
}

// The sums of a row from those of its channels, and a part of dx.
template <int V, bool inside, class Functor>
__global__ void __launch_bounds__(groups_most_threads, 2)
    write_by_sums(const __grid_constant__ Functor functor, const __grid_constant__ GroupParts parts,
                  BlockSums<typename Functor::Wide> found) {
  using State = typename Functor::template State<1>;
  extern __shared__ __align__(16) char memory[];
  __shared__ State warps[groups_most_threads / 32];
  const GroupShape& shape = functor.shape;
  HeldGroups<V, inside, Functor> held(functor, parts, gridDim.x - 1 - int64_t(blockIdx.x), memory);
  int64_t row = held.of.row, element = row / shape.groups, position = (row - element * shape.groups) * shape.channels;
  int64_t parameter = shape.parameter(row), count = shape.channels * parts.cuts;
  State sum;
  sum.clear();
  for (int64_t k = thread_of_block(); k < count; k += blockDim.x) {
    int64_t cut = k / shape.channels, channel = k - cut * shape.channels, block = element * parts.cuts + cut;
    State s;
    s.first[0] = found.of(block, 0)[position + channel], s.second[0] = found.of(block, 1)[position + channel];
    sum.add(functor.weighted(s, functor.factor(parameter + channel)));
  }
  held.write_row(functor, parts, sum_of_block(sum, warps));
}

// Where more parts than `most_parts` are added to one sum, those of each chunk are added before.
inline constexpr int64_t most_parts = 1024, parts_of_chunk = 256;

// The sums of the parts of a chunk, in order: a warp has every 16th of them. A block has 32 columns of all sums.
template <class Wide>
__global__ void __launch_bounds__(32 * part_warps)
    add_chunks(BlockSums<Wide> parts, int64_t of_weight, int64_t chunks, int64_t tiles, BlockSums<Wide> to) {
  __shared__ Wide shared[part_warps][32];
  int64_t tile = blockIdx.x % tiles, block = blockIdx.x / tiles, batch = block / chunks;
  int64_t begin = (block - batch * chunks) * parts_of_chunk, left = of_weight - begin;
  int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32,
      count = int(left < parts_of_chunk ? left : parts_of_chunk);
  int64_t column = tile * 32 + lane, columns = parts.sums * parts.columns;
  Wide sum = 0;
  if (column < columns)
#pragma unroll 4
    for (int part = warp; part < count; part += part_warps)
      sum += parts.of(batch * of_weight + begin + part, 0)[column];
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  for (int other = 1; other < part_warps; ++other) sum += shared[other][lane];
  to.of(block, 0)[column] = sum;
}

template <int V, bool inside, class Functor>
Status run_groups_with_sums_by(Executor executor, const Functor& functor,
                               ColumnSums<typename Functor::Element> of_weight,
                               ColumnSums<typename Functor::Element> of_bias) {
  using T = typename Functor::Element;
  using Wide = typename Functor::Wide;
  constexpr GroupBytes bytes{2 * int(sizeof(T)), int(2 * sizeof(int64_t)), int(sizeof(typename Functor::ChannelInRow)),
                             int(sizeof(typename Functor::template State<1>))};
  const GroupShape& shape = functor.shape;
  int64_t most = 0;
  Status status = most_bytes_of_part(most);
  if (!status.ok()) return status;
  bool is_whole, clusters = has_clusters(sum_parts<V, inside, Functor>);
  auto parts = plan_group_parts(shape, V, bytes, most, clusters, is_whole);
  int64_t channels = shape.groups * shape.channels;
  Wide* memory = executor.scratch<Wide>(shape.batch * parts.cuts * 2 * channels);
  if (!memory) return small_workspace;
  BlockSums<Wide> found{memory, 2, channels};
  status = launch_parts(executor, sum_parts<V, inside, Functor>, shape, parts, bytes, is_whole, functor, parts, found,
                        is_whole);
  if (!status.ok()) return status;
  if (!is_whole) {
    status =
        launch_parts(executor, write_by_sums<V, inside, Functor>, shape, parts, bytes, false, functor, parts, found);
    if (!status.ok()) return status;
  }
  int64_t batches = shape.batch / shape.of_weight, of_weight_parts = shape.of_weight * parts.cuts;
  if (of_weight_parts > most_parts) {
    int64_t chunks = ceil_div(of_weight_parts, parts_of_chunk), tiles = ceil_div(2 * channels, 32);
    memory = executor.scratch<Wide>(batches * chunks * 2 * channels);
    if (!memory) return small_workspace;
    BlockSums<Wide> of_chunks{memory, 2, channels};
    add_chunks<Wide><<<unsigned(batches * chunks * tiles), 32 * part_warps, 0, executor.stream>>>(
        found, of_weight_parts, chunks, tiles, of_chunks);
    found = of_chunks, of_weight_parts = chunks;
    if (status = launched(); !status.ok()) return status;
  }
  return launch_add_parts<T>(executor, found, batches, int(of_weight_parts), of_weight, of_bias);
}

}  // namespace internal

// The workspace has room for two sums of each cut of each channel of each element of the batch.
template <class Functor, class T = typename Functor::Element>
Status run_groups_with_sums(const Executor& executor, const Functor& functor, ColumnSums<T> of_weight,
                            ColumnSums<T> of_bias) {
  if (functor.shape.rows() == 0) return {};
  return internal::with_group_width<T>(functor.shape.space, [&](auto width, auto inside) {
    return internal::run_groups_with_sums_by<width(), inside()>(executor, functor, of_weight, of_bias);
  });
}

}  // namespace baracuda
