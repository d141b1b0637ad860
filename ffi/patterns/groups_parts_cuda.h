// What the groups pattern shares on CUDA: how rows, which are groups of channels, are cut into parts, one for each
// block, which stay in its shared memory; and how sums of parts become one in a fixed order.
//
// A part is contiguous: some whole rows that are short; or a row; or some channels of it; or a chunk of a channel, its
// cut. So it is copied and written by vectors, wherever channels begin. Which thread has what depends on shapes alone.
#pragma once

#include <algorithm>

#include "../kernels/group_normalize.h"
#include "cluster_cuda.h"
#include "copy_async_cuda.h"
#include "divisor.h"
#include "executor.h"
#include "row_team_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int groups_threads = 256, groups_most_threads = 512, groups_most_cluster = 8;
// Blocks that fill a device.
inline constexpr int64_t groups_enough = 264;
// A row of so many elements is summed by a warp or less, and a block has several.
inline constexpr int64_t groups_short_row = 1024;
// What a block has of a row that is more than a cluster has.
inline constexpr int64_t groups_bytes_of_long = 32 << 10;

struct GroupParts {
  int rows = 1;              // of a block; where they are several, all of each
  int parts = 1;             // of a row
  int channels = 0;          // of a row's part
  int cuts = 1;              // of a channel; where they are several a part has one channel
  int64_t segment = 0;       // elements of a channel that a part has
  int64_t elements = 0;      // of a block
  int threads = 32;          // of a block
  int lanes = 32;            // that sum a row, where a block has several
  int of_channel = 32;       // lanes of a team that sums a channel,
  int teams_of_channel = 1;  // of which a channel has so many
  Divisor<int32_t> by_space, by_channels;
};

// What a block needs of memory: for an element, a row, a channel of a row, and the sums of a team.
struct GroupBytes {
  int element, row, channel, team;

  int64_t of(const GroupParts& parts) const {
    int64_t channels = int64_t(parts.rows) * parts.channels;
    return ceil_div(parts.elements * element, 16) * 16 + 64 + channels * (channel + parts.teams_of_channel * team) +
           int64_t(parts.rows) * row;
  }
};

inline int power_of_two(int64_t least, int64_t from, int64_t to) {
  int64_t power = from;
  while (power < least && power < to) power *= 2;
  return int(power);
}

// Lanes for so many neighbors: each sums four vectors, or eight elements where they are not aligned.
inline int lanes_for(int64_t length, int V) {
  return power_of_two(length % V ? ceil_div(length, 8) : ceil_div(length, 4 * V), 1, 32);
}

// The threads of a block: one for 256 bytes, of which a multiprocessor with full memory has some thousand, or more
// where blocks do not fill the device.
inline int threads_for(int64_t bytes, bool many, int least, int most) {
  return power_of_two(ceil_div(bytes, many ? 256 : 64), least, most);
}

// The lanes of channels, and what is divided by.
inline void finish_parts(GroupParts& parts, const GroupShape& shape, int V) {
  int64_t length = parts.cuts > 1 ? parts.segment : shape.space;
  parts.of_channel = lanes_for(shape.space % V ? shape.space : length, V);
  int64_t warps = parts.threads / 32, channels = int64_t(parts.rows) * parts.channels;
  parts.teams_of_channel =
      parts.of_channel < 32 ? 1 : int(std::max<int64_t>(1, std::min(warps / channels, length / 256)));
  // A part of a cut channel has one channel.
  parts.by_space = Divisor<int32_t>(parts.cuts > 1 ? 1 << 30 : shape.space);
  parts.by_channels = Divisor<int32_t>(shape.channels > 1 << 30 ? 1 << 30 : shape.channels);
}

// Several rows for a block, as many as its threads sum at a time or more, as have memory and as leave enough blocks.
inline GroupParts parts_of_rows(const GroupShape& shape, int V, const GroupBytes& bytes, int64_t most_bytes) {
  constexpr int64_t most = 512;
  int64_t columns = shape.columns();
  GroupParts of;
  of.channels = int(shape.channels), of.segment = shape.space;
  of.lanes = lanes_for(columns, V);
  int64_t rows = groups_threads / of.lanes;
  while (rows < most && rows * 2 * columns <= 8192) rows *= 2;
  while (rows > 1 && shape.rows() < rows * groups_enough) rows /= 2;
  for (;; rows /= 2) {
    of.rows = int(rows), of.elements = rows * columns;
    of.threads = rows > 1 ? power_of_two(rows * of.lanes, 32, groups_threads)
                          : threads_for(columns * bytes.element, false, 32, groups_threads);
    finish_parts(of, shape, V);
    if (rows == 1 || bytes.of(of) <= most_bytes) return of;
  }
}

// The parts for about `count` blocks of a row.
inline GroupParts parts_of_row(const GroupShape& shape, int V, const GroupBytes& bytes, int64_t count) {
  GroupParts of;
  of.cuts = int(count <= shape.channels ? 1 : ceil_div(count, shape.channels));
  of.channels = int(of.cuts > 1 ? 1 : ceil_div(shape.channels, count));
  of.segment = ceil_div(ceil_div(shape.space, V), of.cuts) * V;
  of.parts = int(of.cuts > 1 ? shape.channels * of.cuts : ceil_div(shape.channels, of.channels));
  of.elements = of.cuts > 1 ? of.segment : of.channels * shape.space;
  of.threads = threads_for(of.elements * bytes.element, shape.rows() * count >= groups_enough, 64, groups_most_threads);
  finish_parts(of, shape, V);
  return of;
}

// So many blocks of a row, at most a cluster, as have memory for it, and as fill the device; or, where it is longer or
// there are no clusters, parts whose sums another kernel reads.
inline GroupParts plan_group_parts(const GroupShape& shape, int V, const GroupBytes& bytes, int64_t most_bytes,
                                   bool has_clusters, bool& is_whole) {
  constexpr int64_t little = 4096;  // elements of a part that is not cut for the device's sake
  is_whole = true;
  if (shape.columns() <= groups_short_row) return parts_of_rows(shape, V, bytes, most_bytes);
  GroupParts found;
  is_whole = false;
  for (int64_t count = 1; count <= (has_clusters ? groups_most_cluster : 1); count *= 2) {
    GroupParts of = parts_of_row(shape, V, bytes, count);
    if (bytes.of(of) > most_bytes || of.parts > count) continue;
    of.parts = int(count), found = of, is_whole = true;  // the last ones may have nothing
    if (shape.rows() * count >= groups_enough || shape.columns() <= little * count) break;
  }
  if (is_whole && (has_clusters || shape.rows() >= groups_enough / 2 || shape.columns() <= 2 * little)) return found;
  is_whole = false;
  int64_t capacity = groups_bytes_of_long / bytes.element;
  int64_t count = std::max<int64_t>(1, shape.columns() / capacity);
  do {
    found = parts_of_row(shape, V, bytes, count);
    count += ceil_div(count, 16);
  } while (found.elements > capacity || bytes.of(found) > most_bytes);
  return found;
}

__device__ inline int thread_of_block() { return int(threadIdx.x); }

// What a block has: elements first ... first + elements of the array. In shared memory they begin at the `head` of a
// vector, so that vectors are aligned there as they are in memory; those of [low, high) are whole.
template <int V, bool inside>
struct PartOfRows {
  int64_t row, first, parameter;
  int rows, part, cut, first_channel, channels, length, elements, head, low, high;

  __device__ PartOfRows(const GroupShape& shape, const GroupParts& parts, int64_t block) {
    row = parts.rows > 1 ? block * parts.rows : block / parts.parts;
    part = parts.rows > 1 ? 0 : int(block - row * parts.parts);
    int64_t more = shape.rows() - row;
    rows = int(more < parts.rows ? more : parts.rows);
    cut = parts.cuts > 1 ? part % parts.cuts : 0;
    int64_t channel = parts.cuts > 1 ? part / parts.cuts : int64_t(part) * parts.channels;
    int64_t begin = cut * parts.segment, left = shape.channels - channel, rest = shape.space - begin;
    channels = int(left < 0 ? 0 : left < parts.channels ? left : parts.channels);
    length = parts.cuts == 1 ? int(shape.space) : int(rest < 0 ? 0 : rest < parts.segment ? rest : parts.segment);
    elements = rows * channels * length;
    first_channel = int(channel);
    first = (row * shape.channels + channel) * shape.space + begin;
    head = inside ? 0 : int(first % V);
    low = inside ? 0 : (V - head) % V;
    if (low > elements) low = elements;
    high = low + (elements - low) / V * V;
  }
  // Where in shared memory the array's values are, of those that begin at `memory`; and where others may begin.
  template <class T>
  __device__ T* values(char* memory) const {
    return reinterpret_cast<T*>(memory) + head;
  }
  template <class T>
  static __device__ char* after(char* memory, int64_t elements) {
    return memory + (elements * int(sizeof(T)) + 31) / 16 * 16;
  }
  // body(channel, row, position of its weight) for the channels of the part's rows, which threads share.
  template <class Body>
  __device__ void each_channel(const GroupShape& shape, const GroupParts& parts, const Body& body) const {
    int64_t parameter = shape.parameter(row) + first_channel;
    for (int channel = thread_of_block(); channel < rows * channels; channel += int(blockDim.x)) {
      int in = parts.rows > 1 ? parts.by_channels.quotient(channel) : 0;
      int64_t of_row = in == 0 ? parameter : shape.parameter(row + in);
      body(channel, in, of_row + channel - in * channels);
    }
  }
  // body(width, k) for vectors, and for the elements before and after these.
  template <class Body>
  __device__ void each(const Body& body) const {
    int thread = thread_of_block(), step = int(blockDim.x) * V;
#pragma unroll 2
    for (int k = low + thread * V; k < high; k += step) body(std::integral_constant<int, V>{}, k);
    if constexpr (!inside)
      if (thread < low + elements - high)
        body(std::integral_constant<int, 1>{}, thread < low ? thread : high + thread - low);
  }
};

// Copies a part to shared memory, until `__pipeline_wait_prior` and a barrier.
template <class T, int V, bool inside>
__device__ void copy_part(const PartOfRows<V, inside>& of, const T* from, T* values) {
  from += of.first;
  of.each([&](auto width, int k) {
    if constexpr (width() == V)
      copy_async(values + k, from + k, 16);
    else
      values[k] = from[k];
  });
}
__device__ inline void wait_for_copies() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

// body(width, k) for those of the elements [begin, end) that lane `lane` of `lanes` has: vectors where these are
// aligned.
template <int V, class Body>
__device__ void each_of_lane(int begin, int end, int lane, int lanes, bool by_vectors, const Body& body) {
  if (by_vectors) {
#pragma unroll 2
    for (int k = begin + lane * V; k < end; k += lanes * V) body(std::integral_constant<int, V>{}, k);
  } else {
#pragma unroll 4
    for (int k = begin + lane; k < end; k += lanes) body(std::integral_constant<int, 1>{}, k);
  }
}

// write(width, k, left, here, next) for all elements: the first `left` from k are of one channel, the others of the
// next one; `here` and `next` are what is known of these.
template <int V, bool inside, class Channel, class Write>
__device__ void write_part(const PartOfRows<V, inside>& of, const GroupParts& parts, const Channel* channels,
                           const Write& write) {
  int space = parts.by_space.value;
  auto write_one = [&](auto width, int k) {
    constexpr int W = width();
    int channel = parts.by_space.quotient(k);
    Channel here = channels[channel];
    if constexpr (inside || W == 1) {
      write(width, k, W, here, here);
    } else {
      int left = (channel + 1) * space - k;
      Channel next = channels[left < W ? channel + 1 : channel];
      write(width, k, left, here, next);
    }
  };
  if (inside || space >= V)
    of.each(write_one);
  else
    for (int k = thread_of_block(); k < of.elements; k += int(blockDim.x))
      write_one(std::integral_constant<int, 1>{}, k);
}

// The sum of `lanes` neighboring threads' states, a power of two, in each of them.
template <class State>
__device__ State sum_of_lanes(State state, int lanes = 32) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2)
    if (offset < lanes) state.add(from_lane(state, offset));
  return state;
}

// The sum of the states of a block of whole warps, in each thread. `shared` has an element for each warp.
template <class State>
__device__ State sum_of_block(State state, State* shared) {
  int thread = thread_of_block(), warps = int(blockDim.x) / 32;
  state = sum_of_lanes(state);
  if (thread % 32 == 0) shared[thread / 32] = state;
  __syncthreads();
  state = shared[0];
  for (int warp = 1; warp < warps; ++warp) state.add(shared[warp]);
  return state;
}

// The states of a cluster's blocks, added in order, in each thread. All threads call `leave_cluster` at the end: until
// then the block's shared memory may be read by others.
template <class State>
struct ClusterStates {
  State own, all[groups_most_cluster];
};
template <class State>
__device__ State sum_of_cluster(const State& state, ClusterStates<State>& shared, int parts) {
#if __CUDA_ARCH__ >= 900
  auto cluster = cooperative_groups::this_cluster();
  int thread = thread_of_block();
  if (thread == 0) shared.own = state;
  cluster.sync();
  if (thread < parts) shared.all[thread] = *cluster.map_shared_rank(&shared.own, thread);
  __syncthreads();
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  State sum = shared.all[0];
  for (int part = 1; part < parts; ++part) sum.add(shared.all[part]);
  return sum;
#else
  return state;
#endif
}
__device__ inline void leave_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// A block for each part of each row, or for several rows; those of a row are a cluster where they are several and
// `in_cluster`.
template <class Shape, class Parts, class Bytes, class... Parameters, class... Values>
Status launch_parts(const Executor& executor, void (*kernel)(Parameters...), const Shape& shape, const Parts& parts,
                    const Bytes& bytes, bool in_cluster, const Values&... values) {
  const unsigned blocks = unsigned(ceil_div(shape.rows(), parts.rows) * parts.parts);
  const size_t dynamic_bytes = size_t(bytes.of(parts));
  if (Status status = allow_shared_memory(kernel, int64_t(dynamic_bytes)); !status.ok()) return status;
  return launch_clusters(executor, kernel, blocks, in_cluster ? unsigned(parts.parts) : 1, unsigned(parts.threads),
                         dynamic_bytes, values...);
}

// run(V, inside): vectors of 16 bytes, and whether all of each are of one channel, and aligned where it begins.
template <class T, class Run>
Status with_group_width(int64_t space, const Run& run) {
  constexpr int V = 16 / sizeof(T);
  if (space % V == 0) return run(std::integral_constant<int, V>{}, std::true_type{});
  return run(std::integral_constant<int, V>{}, std::false_type{});
}

// The most memory of a block: half a multiprocessor's, so that one block computes while another's copies are on their
// way, less what kernels declare.
inline Status most_bytes_of_part(int64_t& bytes) {
  int most = 0;
  Status status = most_shared_memory(most);
  bytes = most / 2 - (3 << 10);
  return status;
}

}  // namespace internal
}  // namespace baracuda
