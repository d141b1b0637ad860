// What there is to know of the positions of all chunks, found once for all kernels of a scan that read it: a warp takes
// longer for it than for its part of a chunk's products.
#pragma once

#include <cuda_pipeline.h>

#include "chunk_positions_cuda.h"
#include "copy_async_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int decays_block = 256;
static_assert(sizeof(Positions<BFloat16>) == 1552);  // as in baracuda_jax/state_space/_ssd_chunk_scan_bodies.py

// A block has a chunk of neighboring heads, of which steps are neighbors, and a warp one of these.
template <class T>
__global__ void __launch_bounds__(decays_block) chunk_decays(ChunkScan<T> scan, Positions<T>* decays) {
  constexpr int warps = decays_block / 32, each = sizeof(Positions<T>) / 16, side = Positions<T>::side;
  __shared__ Positions<T> found[warps];
  __shared__ T steps[warps][side + 2];
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int chunks = int(scan.chunks()), heads = int(scan.shape.heads), blocks = (heads + warps - 1) / warps;
  const int of_chunk = int(blockIdx.x) / blocks, first = (int(blockIdx.x) - of_chunk * blocks) * warps;
  const int sequence = of_chunk / chunks, chunk = of_chunk - sequence * chunks;
  const int64_t begin = int64_t(chunk) * side;
#pragma unroll
  for (int i = 0; i < side; i += decays_block / warps) {
    const int of_block = int(threadIdx.x) % warps, p = i + int(threadIdx.x) / warps;
    if (begin + p < scan.shape.length && first + of_block < heads)
      steps[of_block][p] = scan.dt[scan.dt_at(sequence, begin + p, first + of_block)];
  }
  const int head = min(first + warp, heads - 1);
  typename Positions<T>::Head of_head;
  typename Positions<T>::Raw raw;
  of_head.load(scan, sequence, head);
  raw.load_starts(scan, sequence, begin);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Positions<T>::each; ++i) raw.dt[i] = steps[warp][lane * Positions<T>::each + i];
  if (first + warp >= heads) return;
  found[warp].find(scan, begin, of_head, raw);
  __syncwarp();
  const float4* from = reinterpret_cast<const float4*>(&found[warp]);
  float4* to = reinterpret_cast<float4*>(decays + (int64_t(sequence) * heads + head) * chunks + chunk);
  for (int i = lane; i < each; i += 32) to[i] = from[i];
}

// Begins to copy those of a chunk, by the first threads of a block.
template <class T>
__device__ void read_decays(Positions<T>& to, const Positions<T>& from) {
  constexpr int each = sizeof(Positions<T>) / 16;
  if (threadIdx.x < each)
    copy_async(reinterpret_cast<char*>(&to) + threadIdx.x * 16, reinterpret_cast<const char*>(&from) + threadIdx.x * 16,
               16);
}

// Finds those of a scan [groups, batches, heads, chunks], in the workspace.
template <class T>
Status launch_chunk_decays(Executor& executor, const ChunkScan<T>& scan, Positions<T>*& decays) {
  const int64_t of_head = scan.shape.sequences() * scan.chunks();
  decays = executor.scratch<Positions<T>>(of_head * scan.shape.heads);
  if (!decays) return small_workspace;
  return launch_chunks(executor, chunk_decays<T>, of_head * ceil_div(scan.shape.heads, decays_block / 32), decays_block,
                       0, scan, decays);
}

}  // namespace internal
}  // namespace baracuda
