// What the groups pattern shares on CUDA: how a row, which is a group of channels, is cut into parts, one for each
// block, that stay in its registers; and how sums of parts become one in a fixed order.
//
// A part is some channels, or of a long channel a chunk, `segment`. A team of lanes has a channel, and then the
// channel that is a number of teams farther. Which lane has what depends on shapes alone.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>
#include <cstring>

#include "../kernels/group_normalize.h"
#include "executor.h"
#include "row_team_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int groups_threads = 256, groups_most_threads = 512, groups_most_cluster = 8;
// Blocks that fill a device.
inline constexpr int64_t groups_enough = 264;

struct GroupParts {
  int lanes, teams;  // of a block
  int per;           // vectors of a segment that a lane has
  int slots;         // channels that a team has
  int channels;      // of a part
  int cuts;          // of a channel; where they are several a part has one channel
  int64_t segment;   // elements of a channel that a part has
  int parts;         // of a row

  dim3 block() const { return dim3(unsigned(lanes), unsigned(teams)); }
};

// The parts for about `count` blocks of a row; `fits` says whether lanes have registers for them.
inline GroupParts group_parts(const GroupShape& shape, int V, int held, int threads, int64_t count, bool& fits) {
  GroupParts of;
  of.cuts = int(count <= shape.channels ? 1 : ceil_div(count, shape.channels));
  of.channels = int(of.cuts > 1 ? 1 : ceil_div(shape.channels, count));
  int64_t vectors = ceil_div(shape.space / V, of.cuts);
  of.segment = vectors * V;
  of.parts = int(of.cuts > 1 ? shape.channels * of.cuts : ceil_div(shape.channels, of.channels));
  int64_t lanes = 4;
  while (lanes < 32 && lanes < vectors) lanes *= 2;
  if (vectors > 32 * held) lanes = 32 * ceil_div(vectors, 32 * held);
  fits = lanes <= threads;
  of.lanes = int(std::min<int64_t>(lanes, threads));
  of.per = int(ceil_div(vectors, of.lanes));
  int step = std::max(32 / of.lanes, 1);  // whole warps
  int needed = int(ceil_div(std::min(of.channels, threads), step)) * step;
  of.teams = std::max(std::min(threads / of.lanes, needed), step);
  of.slots = int(ceil_div(of.channels, of.teams));
  fits = fits && int64_t(of.slots) * of.per <= held;
  return of;
}

// So many blocks of a row, at most a cluster, as its registers hold it, and as fill the device; or, where it is longer
// or there are no clusters, parts whose sums another kernel reads.
inline GroupParts plan_group_parts(const GroupShape& shape, int V, int held, bool has_clusters, bool& is_whole,
                                   int least_threads = groups_threads) {
  constexpr int64_t little = 4096;  // elements of a part that is not cut for the device's sake
  GroupParts found{};
  is_whole = false;
  for (int threads = least_threads; threads <= groups_most_threads && !is_whole; threads *= 2)
    for (int64_t count = 1; count <= (has_clusters ? groups_most_cluster : 1); count *= 2) {
      bool fits;
      GroupParts of = group_parts(shape, V, held, threads, count, fits);
      if (!fits || of.parts > count) continue;
      of.parts = int(count), found = of, is_whole = true;  // the last ones may have nothing
      if (shape.rows() * count >= groups_enough || shape.columns() <= little * count) break;
    }
  if (is_whole && (has_clusters || shape.rows() >= groups_enough / 2 || shape.columns() <= 2 * little)) return found;
  is_whole = false;
  bool fits = false;
  int64_t capacity = int64_t(groups_threads) * held * V;
  for (int64_t count = std::max<int64_t>(1, shape.columns() / capacity); !fits; count += ceil_div(count, 16))
    found = group_parts(shape, V, held, groups_threads, count, fits);
  return found;
}

// What a block has of a row: up to `held` vectors a lane.
template <int V, int held>
struct PartOfRow {
  GroupParts parts;
  int64_t row, first, space, parameter;
  int part, cut, first_channel, count, length;

  __device__ PartOfRow(const GroupShape& shape, const GroupParts& parts, int64_t block) : parts(parts) {
    row = block / parts.parts, part = int(block - row * parts.parts);
    cut = parts.cuts > 1 ? part % parts.cuts : 0;
    int64_t channel = parts.cuts > 1 ? part / parts.cuts : int64_t(part) * parts.channels;
    int64_t begin = cut * parts.segment, left = shape.channels - channel, rest = shape.space - begin;
    count = int(left < 0 ? 0 : left < parts.channels ? left : parts.channels);
    length = int(rest < 0 ? 0 : rest < parts.segment ? rest : parts.segment);
    first_channel = int(channel), space = shape.space;
    first = (row * shape.channels + channel) * space + begin;
    parameter = shape.parameter(row) + channel;
  }
  __device__ int64_t elements() const { return int64_t(count) * length; }
  __device__ bool is_first() const { return part == 0 && threadIdx.x == 0 && threadIdx.y == 0; }
  // body(i, channel, element) for the i-th vector of the lane, of a channel of the part; and after a channel's last one
  // after(slot), by all lanes.
  template <class Body, class After>
  __device__ void each(const Body& body, const After& after) const {
    int slot = 0, k = 0;
#pragma unroll
    for (int i = 0; i < held; ++i) {
      int channel = int(threadIdx.y) + slot * parts.teams, at = (k * parts.lanes + int(threadIdx.x)) * V;
      if (channel < count && at < length) body(i, channel, first + channel * space + at);
      if (++k == parts.per) {
        if (slot < parts.slots) after(slot);
        k = 0, ++slot;
      }
    }
  }
  template <class Body>
  __device__ void each(const Body& body) const {
    each(body, [](int) {});
  }
};

// Values in registers as if they were read anew. Without that the compiler keeps what 16-bit elements are widened to,
// for the next loop over them, in twice the registers.
template <class Values, int held>
__device__ void as_read_anew(Values (&values)[held]) {
  if constexpr (sizeof(Values) % 4 == 0) {
#pragma unroll
    for (int i = 0; i < held; ++i) {
      uint32_t words[sizeof(Values) / 4];
      memcpy(words, &values[i], sizeof(Values));
#pragma unroll
      for (uint32_t& word : words) asm volatile("" : "+r"(word));
      memcpy(&values[i], words, sizeof(Values));
    }
  }
}

__device__ inline int thread_of_block() { return int(threadIdx.y * blockDim.x + threadIdx.x); }

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
  int thread = thread_of_block(), warps = int(blockDim.x * blockDim.y) / 32;
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

// Whether the device has clusters, and the kernel was compiled for them.
template <class Kernel>
bool has_clusters(Kernel* kernel) {
  int device = 0, launches = 0;
  cudaFuncAttributes attributes{};
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&launches, cudaDevAttrClusterLaunch, device) == cudaSuccess && launches != 0 &&
         cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90;
}

// A block for each part of each row; those of a row are a cluster where they are several and `in_cluster`.
template <class... Parameters, class... Values>
Status launch_parts(const Executor& executor, void (*kernel)(Parameters...), const GroupShape& shape,
                    const GroupParts& parts, bool in_cluster, const Values&... values) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(shape.rows() * parts.parts)), config.blockDim = parts.block();
  config.stream = executor.stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = unsigned(parts.parts), attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute, config.numAttrs = in_cluster && parts.parts > 1 ? 1 : 0;
  cudaError_t error = cudaLaunchKernelEx(&config, kernel, Parameters(values)...);
  if (error != cudaSuccess) return {cudaGetErrorString(error)};
  return launched();
}

// run(V) for the widest vectors that channels consist of, of 16 bytes, 8, or one element.
template <class T, class Run>
Status with_group_width(int64_t space, const Run& run) {
  constexpr int V = 16 / sizeof(T);
  if (space % V == 0) return run(std::integral_constant<int, V>{});
  if constexpr (sizeof(T) == 2)
    if (space % (V / 2) == 0) return run(std::integral_constant<int, V / 2>{});
  return run(std::integral_constant<int, 1>{});
}

}  // namespace internal
}  // namespace baracuda
