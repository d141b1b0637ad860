// What gradients of chunk scans on CUDA share: scratch memory, the gradients of steps, and sums over chunks.
#pragma once

#include <algorithm>

#include "chunk_positions_cuda.h"
#include "chunk_products_cuda.h"

namespace baracuda {
namespace internal {

// Scratch memory.
template <class T>
struct ChunkSums {
  using Wide = Accumulator<T>;
  SavedState<T>* dstates;  // [groups, batches, heads, chunks, rows, columns], after each chunk
  // [groups, batches, shared, parts, length, 2, columns]: of B and C; null where one part has all heads, which stores
  // the gradients.
  Wide* shared;
  Wide* heads;  // [groups, batches, heads, chunks, 2 + skips]: of A, of the bias, of D
  int64_t parts;
};

// What a block of a chunk's gradient has: a part of the heads that share a B and C.
struct ChunkPart {
  int64_t sequence, chunk, which, part;

  static __device__ ChunkPart of_block(const ChunkShape& shape, int64_t chunks, int64_t parts) {
    int64_t index = int64_t(blockIdx.x) / parts, of_chunk = index / shape.shared;
    return {of_chunk / chunks, of_chunk % chunks, index % shape.shared, int64_t(blockIdx.x) % parts};
  }
};

// Sums over the lanes that have the same rows of a product.
template <class Wide>
__device__ Wide sum_of_row(Wide value) {
  value += __shfl_xor_sync(~0u, value, 1);
  return value + __shfl_xor_sync(~0u, value, 2);
}

// Of paths[i][j], which is what j gives i, the sum over all i and j with j < k <= i: all that is scaled by the decay of
// position k. A team of lanes has a row, and then a column.
template <int threads, int side, int path_pitch, class Wide>
__device__ void sum_paths(Wide* paths, Wide* of_path) {
  constexpr int team = threads / side, each = side / team;
  const int line = threadIdx.x / team, lane = threadIdx.x % team;
  Wide before[each], sum = 0;
  Wide* row = paths + line * path_pitch + lane * each;
#pragma unroll
  for (int k = 0; k < each; ++k) before[k] = sum, sum += row[k];
  Wide preceding = 0;
#pragma unroll
  for (int other = 0; other < team - 1; ++other) {
    Wide of_other = __shfl_sync(~0u, sum, other, team);
    if (other < lane) preceding += of_other;
  }
#pragma unroll
  for (int k = 0; k < each; ++k) row[k] = preceding + before[k];
  __syncthreads();
  Wide total = 0;
#pragma unroll
  for (int k = 0; k < each; ++k) {
    int i = k * team + lane;
    if (i >= line) total += paths[i * path_pitch + line];
  }
#pragma unroll
  for (int distance = team / 2; distance > 0; distance /= 2) total += __shfl_xor_sync(~0u, total, distance, team);
  if (lane == 0) of_path[line] = total;
}

// The cotangents of a chunk's steps, and of A and the bias, by one warp.
template <class T, class Shared>
__device__ void store_steps(const ChunkScan<T>& scan, const Shared& shared, const Positions<T>& positions,
                            int64_t sequence, int64_t head, int64_t begin, T* ddt, Accumulator<T>* of_head) {
  using Wide = Accumulator<T>;
  constexpr int side = Shared::side, each = side / 32;
  const int lane = threadIdx.x % 32;
  const Wide a = scan.a[scan.head_of(sequence, head)];
  Wide of_kept = 0, of_from[each], of_to[each], of_x[each], from = 0, to = 0;
#pragma unroll
  for (const Wide& of_warp : shared.of_kept) of_kept += of_warp;
  of_kept = positions.is_kept ? positions.kept * of_kept : Wide(0);
#pragma unroll
  for (int i = 0; i < each; ++i) {
    int p = lane * each + i;
    of_from[i] = of_to[i] = of_x[i] = 0;
    for (const auto& strip : shared.of_from) of_from[i] += strip[p];
    for (const auto& strip : shared.of_to) of_to[i] += strip[p];
    for (const auto& strip : shared.of_x) of_x[i] += strip[p];
    from += of_from[i], to += of_to[i];
  }
  // Over the lanes after this one, and those before.
  Wide all_after = from, all_before = to;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    Wide after = __shfl_down_sync(~0u, all_after, distance), before = __shfl_up_sync(~0u, all_before, distance);
    if (lane + distance < 32) all_after += after;
    if (lane >= distance) all_before = before + all_before;
  }
  Wide after = __shfl_down_sync(~0u, all_after, 1), before = __shfl_up_sync(~0u, all_before, 1);
  if (lane == 31) after = 0;
  if (lane == 0) before = 0;
  // Of positions in descending order the sums of those after, then in ascending order of those before.
  Wide of_decay[each];
#pragma unroll
  for (int i = each - 1; i >= 0; --i) after += of_from[i], of_decay[i] = after;
  Wide of_a = 0, of_bias = 0;
#pragma unroll
  for (int i = 0; i < each; ++i) {
    int p = lane * each + i;
    Wide decay = shared.of_path[p] + of_decay[i] + before + of_kept;
    before += of_to[i];
    if (begin + p >= scan.shape.length) continue;
    Wide of_raw = (a * decay + of_x[i]) * scan.step_slope(positions.raw[p]);
    ddt[scan.dt_at(sequence, begin + p, head)] = T(of_raw);
    of_a += positions.step[p] * decay, of_bias += of_raw;
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    of_a += __shfl_xor_sync(~0u, of_a, distance);
    of_bias += __shfl_xor_sync(~0u, of_bias, distance);
  }
  if (lane == 0) of_head[0] = of_a, of_head[1] = of_bias;
}

// The gradients of B and C, of the parts' sums in order.
template <class T>
__global__ void __launch_bounds__(product_block) chunk_shared(ChunkShape shape, ChunkSums<T> sums, T* db, T* dc) {
  using Wide = Accumulator<T>;
  int64_t index = int64_t(blockIdx.x) * product_block + threadIdx.x, size = shape.shared * 2 * shape.columns;
  if (index >= shape.sequences() * shape.length * size) return;
  int64_t position = index / size, at = index - position * size, which = at / (2 * shape.columns);
  int64_t sequence = position / shape.length, l = position - sequence * shape.length;
  at -= which * 2 * shape.columns;
  const int64_t each = shape.length * 2 * shape.columns;
  const Wide* from = sums.shared + (sequence * shape.shared + which) * sums.parts * each + l * 2 * shape.columns + at;
  Wide total = 0;
#pragma unroll 4
  for (int64_t part = 0; part < sums.parts; ++part) total += from[part * each];
  bool is_c = at >= shape.columns;
  (is_c ? dc : db)[(position * shape.shared + which) * shape.columns + (is_c ? at - shape.columns : at)] = T(total);
}

// Those of A, the bias and D, of the chunks' sums in order. A warp has one.
template <class T>
__global__ void __launch_bounds__(product_block)
    chunk_heads(ChunkShape shape, ChunkSums<T> sums, int64_t chunks, Accumulator<T>* da, Accumulator<T>* dbias,
                Accumulator<T>* dskip) {
  using Wide = Accumulator<T>;
  int64_t index = (int64_t(blockIdx.x) * product_block + threadIdx.x) / 32, size = 2 + shape.skips;
  if (index >= shape.groups * shape.heads * size) return;
  int64_t of_head = index / size, kind = index - of_head * size, group = of_head / shape.heads;
  int64_t head = of_head - group * shape.heads;
  Wide total = 0;
  for (int64_t i = threadIdx.x % 32; i < shape.batches * chunks; i += 32) {
    int64_t batch = i / chunks, chunk = i - batch * chunks;
    total += sums.heads[(((group * shape.batches + batch) * shape.heads + head) * chunks + chunk) * size + kind];
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(~0u, total, distance);
  if (threadIdx.x % 32 > 0) return;
  if (kind < 2)
    (kind == 0 ? da : dbias)[of_head] = total;
  else
    dskip[of_head * shape.skips + kind - 2] = total;
}

// In how many parts the heads that share B and C are cut, so that there are some blocks for each multiprocessor: as in
// baracuda_jax/state_space/_ssd_chunk_scan_bodies.py.
inline int64_t head_parts(int64_t blocks, int64_t heads) {
  return std::max<int64_t>(1, std::min(heads, ceil_div(256, std::max<int64_t>(blocks, 1))));
}

}  // namespace internal
}  // namespace baracuda
