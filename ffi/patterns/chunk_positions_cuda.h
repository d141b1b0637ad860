// What drivers of chunk scans on CUDA share: the decays of a chunk's positions, and launches.
#pragma once

#include "../kernels/chunk_scan.h"
#include "executor.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

// What a block has: `tiles` blocks have a head, each so many rows of its state from the first on.
struct HeadTile {
  int64_t sequence, head, which, first;  // which B and C

  static __device__ HeadTile of_block(const ChunkShape& shape, int64_t tiles, int64_t side) {
    int64_t of_head = int64_t(blockIdx.x) / tiles, sequence = of_head / shape.heads;
    int64_t head = of_head - sequence * shape.heads;
    return {sequence, head, head / shape.heads_each(), (int64_t(blockIdx.x) - of_head * tiles) * side};
  }
};

// What there is to know of each position of a chunk, by one warp.
template <class T>
struct alignas(16) Positions {
  using Wide = Accumulator<T>;
  static constexpr int side = scan_chunk<T>, each = side / 32;
  Wide raw[side], step[side], decay[side];
  Wide from_state[side], to_state[side];  // what is kept of the state before, and for the one after
  int first[side];                        // where the segment begins; -1 in a chunk before
  Wide kept;
  bool is_kept;

  // A lane's positions, as they are in memory: nothing waits for them before they are used.
  struct Raw {
    T dt[each];
    uint8_t start[each];

    __device__ void load(const ChunkScan<T>& scan, int64_t sequence, int64_t head, int64_t begin) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        int64_t p = begin + threadIdx.x % 32 * each + i;
        dt[i] = p < scan.shape.length ? scan.dt[scan.dt_at(sequence, p, head)] : T(0.f);
      }
      load_starts(scan, sequence, begin);
    }
    __device__ void load_starts(const ChunkScan<T>& scan, int64_t sequence, int64_t begin) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        int64_t p = begin + threadIdx.x % 32 * each + i;
        start[i] = p < scan.shape.length && scan.is_start(sequence, p);
      }
    }
  };
  // What a head has.
  struct Head {
    Wide rate, bias;

    __device__ void load(const ChunkScan<T>& scan, int64_t sequence, int64_t head) {
      rate = Decay<Wide>::rate(scan.a[scan.head_of(sequence, head)]);
      bias = scan.bias[scan.head_of(sequence, head)];
    }
  };

  __device__ void load(const ChunkScan<T>& scan, int64_t sequence, int64_t head, int64_t begin) {
    Raw of_lane;
    Head of_head;
    of_lane.load(scan, sequence, head, begin), of_head.load(scan, sequence, head);
    find(scan, begin, of_head, of_lane);
  }
  __device__ void find(const ChunkScan<T>& scan, int64_t begin, const Head& of_head, const Raw& of_lane) {
    const int lane = threadIdx.x % 32;
    Wide sums[each], sum = 0;
    int firsts[each], latest = -1;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      int p = lane * each + i;
      bool is_there = begin + p < scan.shape.length;
      raw[p] = is_there ? Wide(of_lane.dt[i]) + of_head.bias : Wide(0);
      step[p] = is_there ? scan.step(raw[p]) : Wide(0);
      if (is_there) sum += step[p] * of_head.rate;
      if (of_lane.start[i]) latest = p;
      sums[i] = sum, firsts[i] = latest;
    }
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      Wide other = __shfl_up_sync(~0u, sum, distance);
      int before = __shfl_up_sync(~0u, latest, distance);
      if (lane >= distance) sum = other + sum, latest = max(latest, before);
    }
    Wide all = __shfl_sync(~0u, sum, 31), before = __shfl_up_sync(~0u, sum, 1);
    int last = __shfl_sync(~0u, latest, 31), first_before = __shfl_up_sync(~0u, latest, 1);
    if (lane == 0) before = 0, first_before = -1;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      int p = lane * each + i;
      decay[p] = before + sums[i], first[p] = max(first_before, firsts[i]);
      from_state[p] = first[p] < 0 ? Decay<Wide>::factor(decay[p]) : Wide(0);
      to_state[p] = p >= last ? Decay<Wide>::factor(all - decay[p]) : Wide(0);
    }
    if (lane == 0) is_kept = last < 0, kept = is_kept ? Decay<Wide>::factor(all) : Wide(0);
  }
  // What position i keeps of what j gave.
  __device__ Wide passed(int i, int j, Wide value) const {
    return j <= i && j >= first[i] ? Decay<Wide>::factor(decay[i] - decay[j]) * value : Wide(0);
  }
  // Of j and j + 1, whose decays are there, the factors, without branches; 0 where nothing is passed.
  __device__ float2 passed_pair(int i, int j, float2 other) const {
    const float now = decay[i];
    const int since = first[i];
    const bool is_first = j <= i && j >= since, is_second = j < i && j + 1 >= since;
    const float low = Decay<float>::factor(is_first ? now - other.x : 0.f);
    const float high = Decay<float>::factor(is_second ? now - other.y : 0.f);
    return {is_first ? low : 0.f, is_second ? high : 0.f};
  }
  // Products with the state before, where that is seen.
  __device__ Wide seen(int i, Wide product) const { return first[i] < 0 ? from_state[i] * product : Wide(0); }
};

// What is passed, of such a factor: 0 of an infinity that is not.
__device__ inline float times_passed(float factor, float value) { return factor == 0 ? 0.f : factor * value; }

// Calls run(columns of a block), of states that are padded to so many.
template <class Run>
Status by_columns(const ChunkShape& shape, const Run& run) {
  if (shape.columns <= 64) return run(std::integral_constant<int, 64>{});
  if (shape.columns <= most_columns) return run(std::integral_constant<int, most_columns>{});
  return {"states may have at most 128 columns"};
}

inline Status check_chunk_grid(int64_t blocks) {
  return {blocks < (int64_t(1) << 31) ? nullptr : "the grid would have more than 2^31 - 1 blocks"};
}

// Launches a kernel of so many threads a block and bytes of shared memory.
template <class Kernel, class... Arguments>
Status launch_chunks(const Executor& executor, Kernel kernel, int64_t blocks, int threads, int64_t bytes,
                     const Arguments&... arguments) {
  if (blocks == 0) return {};
  if (Status status = check_chunk_grid(blocks); !status.ok()) return status;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  kernel<<<unsigned(blocks), threads, bytes, executor.stream>>>(arguments...);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
