// The chunk scan pattern on the tensor cores of Hopper, for heads of 64 rows and 128 columns that have no gate.
//
// A block has a head, and two warpgroups. One has the state in registers, of which products are wgmma's: y turned, of
// which the state or x is the factor in registers, and what a chunk adds to the state. The other one copies chunks, and
// finds scores a chunk ahead, of which warps multiply the blocks that are there.
#pragma once

#include "chunk_scan_mma_cuda.h"
#include "tensor_map_cuda.h"
#include "wgmma_cuda.h"

namespace baracuda {
namespace internal {

struct ForwardWgmmaShared {
  using Box = MmaTile<BFloat16, chunk_side, chunk_side>;
  static constexpr int columns = 2 * chunk_side, box = chunk_side * chunk_side, stages = 2, slots = 4;
  static constexpr int box_bytes = box * 2, stage_bytes = 5 * box_bytes;
  struct Stage {
    BFloat16 b[2][box], c[2][box], x[box];
  };
  alignas(1024) Stage stages_[stages];
  BFloat16 scores[stages][box], y[box];
  Positions<BFloat16> positions[slots];
  CopyBarrier full[stages], free[stages], scored[stages], placed[slots];
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// What two warpgroups know.
struct ChunkForwardWgmma {
  using T = BFloat16;
  using Shared = ForwardWgmmaShared;
  using Box = Shared::Box;
  static constexpr int side = chunk_side, steps = side / 16, stages = Shared::stages, slots = Shared::slots;

  const ChunkScan<T>& scan;
  const CUtensorMap &of_x, &of_b, &of_c;
  Shared& shared;
  const Positions<T>* decays;  // of the head
  int sequence, head, which, chunks, strip;

  template <bool is_steps>
  static __device__ uint64_t operand(const T* box) {
    return wgmma_operand<is_steps>(shared_address(box), Shared::box_bytes);
  }
  // By one thread.
  __device__ void read(int chunk) const {
    if (chunk >= chunks) return;
    CopyBarrier& full = shared.full[chunk % stages];
    Shared::Stage& to = shared.stages_[chunk % stages];
    full.arrive_expecting(Shared::stage_bytes);
#pragma unroll
    for (int q = 0; q < 2; ++q)
      copy_box(shared_address(to.c[q]), of_c, which * Shared::columns + q * side, chunk * side, sequence, full);
    copy_box(shared_address(to.x), of_x, head * side, chunk * side, sequence, full);
#pragma unroll
    for (int q = 0; q < 2; ++q)
      copy_box(shared_address(to.b[q]), of_b, which * Shared::columns + q * side, chunk * side, sequence, full);
  }
  __device__ void read_positions(int chunk) const {
    if (chunk >= chunks) return;
    CopyBarrier& placed = shared.placed[chunk % slots];
    placed.arrive_expecting(sizeof(Positions<T>));
    copy_bulk(&shared.positions[chunk % slots], decays + chunk, sizeof(Positions<T>), placed);
  }
  __device__ void find_scores(const float4* products) const {
    ChunkCb product;
    const bool is_first = threadIdx.x % (unit_warps * 32) == 0;
    if (is_first) {
#pragma unroll 1
      for (int i = 0; i < slots; ++i) read_positions(i);
#pragma unroll 1
      for (int i = 0; i < stages; ++i) read(i);
    }
    if (chunks > 0) product.load(products, strip);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (chunk >= stages) {
        const int through = chunk - stages;
        shared.free[through % stages].wait(through / stages % 2);
        if (is_first) read(chunk), read_positions(through + slots);
        __syncwarp();
      }
      shared.placed[chunk % slots].wait(chunk / slots % 2);
#pragma unroll
      for (int k = 0; k < ChunkCb::each; ++k)
        if (k < ChunkCb::count(strip))
          store_scores(Box{shared.scores[chunk % stages]}, shared.positions[chunk % slots], product.part[k],
                       ChunkCb::row(k, strip), ChunkCb::column(k, strip));
      __syncwarp();
      if (threadIdx.x % 32 == 0) shared.scored[chunk % stages].arrive();
      if (chunk + 1 < chunks) product.load(products + (chunk + 1) * ChunkCb::of_chunk, strip);
    }
  }

  __device__ void find_states(T* y, float* last, T* states) const {
    using State = StateStrip<Shared::columns>;
    State h;
    h.load(scan.state + scan.state_at(sequence, head), side, Shared::columns);
    float skip[2];
#pragma unroll
    for (int t = 0; t < 2; ++t) skip[t] = scan.skip_of(sequence, head, strip * mma_rows + mma_row(0, t));
    const int64_t stride = scan.shape.heads * side;
    T* to = y + scan.x_at(sequence, 0, head) + strip * mma_rows;
    if (states) states += scan.saved_at(sequence, head, 0);
    const int lane = threadIdx.x % 32;
    const uint32_t turned_at = Box::as_left() ^ Box::step(strip);
    const uint32_t y_at = shared_address(shared.y) + Box::in_bytes(lane % 8 + lane / 16 * 8, 2 * strip + lane / 8 % 2);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk, to += side * stride) {
      const int now = chunk % stages, parity = chunk / stages % 2;
      const Shared::Stage& stage = shared.stages_[now];
      const Positions<T>& positions = shared.positions[chunk % slots];
      float result[8][4];
#pragma unroll
      for (auto& part : result)
#pragma unroll
        for (float& value : part) value = 0;
      {
        uint32_t rounded[8][2][2];
#pragma unroll
        for (int k = 0; k < 8; ++k) h.round(rounded[k], k);
        shared.full[now].wait(parity);
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < 8; ++k)
          wgmma_add<false>(result, {rounded[k][0][0], rounded[k][1][0], rounded[k][0][1], rounded[k][1][1]},
                           operand<false>(stage.c[k / steps]) + k % steps * wgmma_next<false>);
        wgmma_commit();
        if (states) {
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            uint32_t pair[2][2][2];
#pragma unroll
            for (int i = 0; i < 8; ++i) pair[i / 4][i / 2 % 2][i % 2] = rounded[2 * k + i / 4][i / 2 % 2][i % 2];
            State::store_rounded(states, side, Shared::columns, k, pair);
          }
          states += scan.shape.state_size();
        }
        shared.placed[chunk % slots].wait(chunk / slots % 2);
        h.keep(positions);
        wgmma_wait<0>();
        wgmma_end(result);
      }
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        const float2 kept = *reinterpret_cast<const float2*>(positions.from_state + mma_column(t, 0));
#pragma unroll
        for (int half = 0; half < 2; ++half) result[t][2 * half] *= kept.x, result[t][2 * half + 1] *= kept.y;
        if (scan.starts) {
          const int2 since = *reinterpret_cast<const int2*>(positions.first + mma_column(t, 0));
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            if (since.x >= 0) result[t][2 * half] = 0;
            if (since.y >= 0) result[t][2 * half + 1] = 0;
          }
        }
      }
      uint32_t of_strip[steps][4], left[steps][4];
#pragma unroll
      for (int j = 0; j < steps; ++j) {
        uint32_t turned[4];
        load_transposed_matrices(turned, (shared_address(stage.x) + turned_at) + j * 16 * Box::pitch);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int p = j * 16 + half * 8 + lane % 4 * 2;
          const float2 step = *reinterpret_cast<const float2*>(positions.step + p);
          const float2 kept = *reinterpret_cast<const float2*>(positions.to_state + p);
          const float low = step.x * kept.x, high = step.y * kept.y;
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            const uint32_t pair = turned[2 * t + half];
            of_strip[j][2 * half + t] = pair;
            left[j][2 * half + t] = rounded_pair<T>(low_of_pair(pair) * low, high_of_pair(pair) * high);
          }
        }
      }
      wgmma_begin();
#pragma unroll
      for (int j = 0; j < steps; ++j)
#pragma unroll
        for (int q = 0; q < 2; ++q)
          wgmma_add<true>(h.half(q), left[j], operand<true>(stage.b[q]) + j * wgmma_next<true>);
      wgmma_commit();
      shared.scored[now].wait(parity);
      const uint32_t scores_at = shared_address(shared.scores[now]) + Box::as_right();
#pragma unroll
      for (int m = 0; m < steps; ++m)
#pragma unroll
        for (int j = 0; j <= m; ++j) {
          uint32_t right[2][2];
          Box::right(right, scores_at, m * mma_rows, j);
          multiply_add<T>(result[2 * m], of_strip[j], right[0]);
          multiply_add<T>(result[2 * m + 1], of_strip[j], right[1]);
        }
#pragma unroll
      for (int j = 0; j < steps; ++j) {
        uint32_t turned[4];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            const uint32_t pair = of_strip[j][2 * half + t];
            const float* value = result[2 * j + half] + 2 * t;
            turned[2 * half + t] =
                rounded_pair<T>(value[0] + skip[t] * low_of_pair(pair), value[1] + skip[t] * high_of_pair(pair));
          }
        store_transposed_matrices(y_at + j * 16 * Box::pitch, turned);
      }
      __syncwarp();
      const int count = int(min(scan.shape.length - int64_t(chunk) * side, int64_t(side)));
#pragma unroll
      for (int i = 0; i < side; i += 16) {
        const int row = i + lane / 2;
        if (row < count)
          *reinterpret_cast<uint4*>(to + row * stride + lane % 2 * 8) =
              *reinterpret_cast<const uint4*>(Box{shared.y}.address(row, 2 * strip + lane % 2));
      }
      wgmma_wait<0>();
      wgmma_end(h.half(0)), wgmma_end(h.half(1));
      __syncwarp();
      if (lane == 0) shared.free[now].arrive();
    }
    if (last) h.store(last + scan.state_at(sequence, head), side, Shared::columns);
  }
  // The opposite of load_transposed_matrices.
  static __device__ void store_transposed_matrices(uint32_t row, const uint32_t (&from)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(from[0]),
                 "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
  }
};

#endif

// A template only so that several units may include it.
template <int threads>
__global__ void __launch_bounds__(threads, 2)
    chunk_forward_wgmma(const __grid_constant__ ChunkScan<BFloat16> scan, const __grid_constant__ CUtensorMap of_x,
                        const __grid_constant__ CUtensorMap of_b, const __grid_constant__ CUtensorMap of_c,
                        const float4* products, BFloat16* y, float* last, BFloat16* states,
                        const Positions<BFloat16>* decays) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shared = ForwardWgmmaShared;
  extern __shared__ __align__(1024) unsigned char bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(bytes);
  const auto [sequence, head, which, first] = HeadTile::of_block(scan.shape, 1, chunk_side);
  const int chunks = int(scan.chunks()), warp = uniform_warp();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < Shared::stages; ++i)
      shared.full[i].init(1), shared.free[i].init(unit_warps), shared.scored[i].init(unit_warps);
#pragma unroll
    for (int i = 0; i < Shared::slots; ++i) shared.placed[i].init(1);
  }
  __syncthreads();
  const ChunkForwardWgmma block{scan,
                                of_x,
                                of_b,
                                of_c,
                                shared,
                                decays + (sequence * scan.shape.heads + head) * chunks,
                                int(sequence),
                                int(head),
                                int(which),
                                chunks,
                                warp % unit_warps};
  if (warp < unit_warps) {
    more_registers<176>();
    block.find_states(y, last, states);
  } else {
    fewer_registers<80>();
    block.find_scores(products + (sequence * scan.shape.shared + which) * chunks * ChunkCb::of_chunk);
  }
#endif
}

inline bool suits_forward_wgmma(const ChunkScan<BFloat16>& scan) {
  const ChunkShape& shape = scan.shape;
  for (const BFloat16* at : {scan.x, scan.b, scan.c})
    if (reinterpret_cast<uintptr_t>(at) % 16 != 0) return false;
  constexpr int64_t most = int64_t(1) << 31;
  return !scan.z && shape.rows == chunk_side && shape.columns == 2 * chunk_side && shape.length > 0 &&
         shape.length < most && shape.sequences() < most && shape.heads * shape.rows < most &&
         shape.shared * shape.columns < most && is_hopper();
}

inline Status launch_chunk_forward_wgmma(Executor executor, const ChunkScan<BFloat16>& scan, BFloat16* y, float* last,
                                         BFloat16* states) {
  const ChunkShape& shape = scan.shape;
  CUtensorMap x, b, c;
  Status status;
  auto map = [&](CUtensorMap& to, const BFloat16* at, int64_t columns) {
    if (status.ok()) status = tensor_map(to, at, shape.sequences(), shape.length, columns, chunk_side);
  };
  map(x, scan.x, shape.heads * shape.rows), map(b, scan.b, shape.shared * shape.columns);
  map(c, scan.c, shape.shared * shape.columns);
  float4* products = nullptr;
  Positions<BFloat16>* decays = nullptr;
  if (status.ok()) status = launch_chunk_cb<ForwardWgmmaShared::columns>(executor, scan, products);
  if (status.ok()) status = launch_chunk_decays(executor, scan, decays);
  if (!status.ok()) return status;
  constexpr int threads = 2 * unit_warps * 32;
  return launch_chunks(executor, chunk_forward_wgmma<threads>, shape.sequences() * shape.heads, threads,
                       sizeof(ForwardWgmmaShared), scan, x, b, c, products, y, last, states, decays);
}

}  // namespace internal
}  // namespace baracuda
