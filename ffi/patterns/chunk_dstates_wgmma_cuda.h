// The cotangents of states of chunk_dstates_mma_cuda.h on the tensor cores of Hopper, for heads of 64 rows and 128
// columns that have no gate: a block is a warpgroup with a head, whose cotangent is the sum that products are added to.
// C and the cotangent of y are copied three chunks ahead.
#pragma once

#include "chunk_dstates_mma_cuda.h"
#include "tensor_map_cuda.h"
#include "wgmma_cuda.h"

namespace baracuda {
namespace internal {

struct DstatesWgmmaShared {
  using Box = MmaTile<BFloat16, chunk_side, chunk_side>;
  static constexpr int columns = 2 * chunk_side, box = chunk_side * chunk_side, stages = 4, box_bytes = box * 2;
  static constexpr int stage_bytes = 3 * box_bytes + int(sizeof(Positions<BFloat16>));
  struct Stage {
    BFloat16 c[2][box], dy[box];
  };
  alignas(1024) Stage stages_[stages];
  Positions<BFloat16> positions[stages];
  CopyBarrier full[stages], free[stages];
};

// Template only so that several units may include it.
template <int width>
__global__ void __launch_bounds__(unit_warps * 32, 2)
    chunk_dstates_wgmma(const __grid_constant__ ChunkScan<BFloat16> scan,
                        const __grid_constant__ ChunkGradients<BFloat16> g, const __grid_constant__ CUtensorMap of_c,
                        const __grid_constant__ CUtensorMap of_dy, BFloat16* dstates,
                        const Positions<BFloat16>* decays) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using T = BFloat16;
  using Shared = DstatesWgmmaShared;
  using Box = Shared::Box;
  constexpr int side = chunk_side, stages = Shared::stages;
  extern __shared__ __align__(1024) unsigned char bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(bytes);
  const auto [sequence, head, which, first] = HeadTile::of_block(scan.shape, 1, side);
  const int chunks = int(scan.chunks()), strip = uniform_warp();
  decays += (sequence * scan.shape.heads + head) * chunks;
  if (threadIdx.x == 0)
#pragma unroll
    for (int i = 0; i < stages; ++i) shared.full[i].init(1), shared.free[i].init(unit_warps);
  __syncthreads();
  // Steps go from the last chunk to the first one. By one thread.
  auto read = [&](int step) {
    const int chunk = chunks - 1 - step;
    if (chunk < 0) return;
    CopyBarrier& full = shared.full[step % stages];
    Shared::Stage& to = shared.stages_[step % stages];
    full.arrive_expecting(Shared::stage_bytes);
    copy_box(shared_address(to.dy), of_dy, int(head) * side, chunk * side, int(sequence), full);
    copy_bulk(&shared.positions[step % stages], decays + chunk, sizeof(Positions<T>), full);
#pragma unroll
    for (int q = 0; q < 2; ++q)
      copy_box(shared_address(to.c[q]), of_c, int(which) * Shared::columns + q * side, chunk * side, int(sequence),
               full);
  };
  if (threadIdx.x == 0)
#pragma unroll 1
    for (int step = 0; step < stages; ++step) read(step);

  StateStrip<width> dh;
  dh.load(g.dfinal + scan.state_at(sequence, head), side, width);
  T* to = dstates + scan.saved_at(sequence, head, chunks - 1);
  const uint32_t turned_at = Box::as_left() ^ Box::step(strip);
#pragma unroll 1
  for (int step = 0; step < chunks; ++step, to -= scan.shape.state_size()) {
    const int now = step % stages;
    dh.store_rounded(to, side, width);
    shared.full[now].wait(step / stages % 2);
    const Shared::Stage& stage = shared.stages_[now];
    const Positions<T>& positions = shared.positions[now];
    dh.keep(positions);
    uint32_t left[side / 16][4];
#pragma unroll
    for (int j = 0; j < side / 16; ++j) {
      uint32_t of_strip[4];
      load_transposed_matrices(of_strip, (shared_address(stage.dy) + turned_at) + j * 16 * Box::pitch);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = j * 16 + half * 8 + int(threadIdx.x) % 4 * 2;
        const float2 kept = *reinterpret_cast<const float2*>(positions.from_state + i);
        const int2 since = *reinterpret_cast<const int2*>(positions.first + i);
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const uint32_t pair = of_strip[2 * t + half];
          left[j][2 * half + t] = rounded_pair<T>(since.x < 0 ? kept.x * low_of_pair(pair) : 0.f,
                                                  since.y < 0 ? kept.y * high_of_pair(pair) : 0.f);
        }
      }
    }
    wgmma_begin();
#pragma unroll
    for (int j = 0; j < side / 16; ++j)
#pragma unroll
      for (int q = 0; q < 2; ++q)
        wgmma_add<true>(dh.half(q), left[j],
                        wgmma_operand<true>(shared_address(stage.c[q]), Shared::box_bytes) + j * wgmma_next<true>);
    wgmma_commit();
    // All have read the stage of the step before, or soon will.
    if (threadIdx.x == 0 && step > 0) {
      shared.free[(step - 1) % stages].wait((step - 1) / stages % 2);
      read(step - 1 + stages);
    }
    __syncwarp();
    wgmma_wait<0>();
    wgmma_end(dh.half(0)), wgmma_end(dh.half(1));
    if (threadIdx.x % 32 == 0) shared.free[now].arrive();
  }
  dh.store(g.dstate + scan.state_at(sequence, head), side, width);
#endif
}

inline Status launch_chunk_dstates_wgmma(const Executor& executor, const ChunkScan<BFloat16>& scan,
                                         const ChunkGradients<BFloat16>& g, BFloat16* dstates,
                                         const Positions<BFloat16>* decays) {
  const ChunkShape& shape = scan.shape;
  CUtensorMap c, dy;
  if (Status status = tensor_map(c, scan.c, shape.sequences(), shape.length, shape.shared * shape.columns, chunk_side);
      !status.ok())
    return status;
  if (Status status = tensor_map(dy, g.dy, shape.sequences(), shape.length, shape.heads * shape.rows, chunk_side);
      !status.ok())
    return status;
  return launch_chunks(executor, chunk_dstates_wgmma<DstatesWgmmaShared::columns>, shape.sequences() * shape.heads,
                       unit_warps * 32, sizeof(DstatesWgmmaShared), scan, g, c, dy, dstates, decays);
}

}  // namespace internal
}  // namespace baracuda
