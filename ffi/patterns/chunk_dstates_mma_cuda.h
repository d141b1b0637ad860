// The cotangents of the states of a chunk scan, on tensor cores, as the states are computed: four warps have 64 rows of
// a head's.
#pragma once

#include "chunk_scan_mma_cuda.h"
#include "chunk_sums_cuda.h"

namespace baracuda {
namespace internal {

template <int width>
struct DstatesMmaShared {
  using Columns = MmaTile<BFloat16, width, chunk_side>;
  using Square = MmaTile<BFloat16, chunk_side, chunk_side>;
  alignas(1024) BFloat16 c[2][chunk_side * width];
  BFloat16 dy[2][chunk_side * chunk_side], z[2][chunk_side * chunk_side];
  Positions<BFloat16> positions[2];
};

template <int width>
__global__ void __launch_bounds__(unit_warps * 32, 2)
    chunk_dstates_mma(ChunkScan<BFloat16> scan, ChunkGradients<BFloat16> g, BFloat16* dstates, int64_t tiles,
                      const Positions<BFloat16>* decays) {
  using T = BFloat16;
  using Shared = DstatesMmaShared<width>;
  using Columns = typename Shared::Columns;
  using Square = typename Shared::Square;
  constexpr int side = chunk_side;
  extern __shared__ __align__(1024) unsigned char bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(bytes);
  const ChunkShape& shape = scan.shape;
  const auto [sequence, head, which, first] = HeadTile::of_block(shape, tiles, side);
  const int64_t chunks = scan.chunks();
  const int64_t stride = shape.heads * shape.rows, at = scan.x_at(sequence, 0, head) + first;
  const int columns = int(shape.columns), rows = int(min(shape.rows - first, int64_t(side)));
  const int strip = uniform_warp();
  auto count_of = [&](int64_t chunk) { return int(min(shape.length - chunk * side, int64_t(side))); };

  StateStrip<width> dh;
  dh.load(g.dfinal + scan.state_at(sequence, head) + first * columns, rows, columns);
  decays += (sequence * shape.heads + head) * chunks;
  auto read = [&](int64_t chunk) {
    if (chunk < 0) return;
    const int count = count_of(chunk), now = int(chunk % 2);
    const int64_t from = at + chunk * side * stride;
    MmaSource<Columns, unit_warps * 32>(scan.c + scan.b_at(sequence, chunk * side, which), shape.shared * columns,
                                        columns)
        .read(shared_address(shared.c[now]), count);
    StripSource<Square>(g.dy + from, stride, rows).read(shared_address(shared.dy[now]), count);
    if (scan.z) StripSource<Square>(scan.z + from, stride, rows).read(shared_address(shared.z[now]), count);
    read_decays(shared.positions[now], decays[chunk]);
  };
  read(chunks - 1);
  __pipeline_commit();
  for (int64_t chunk = chunks; chunk-- > 0;) {
    const int now = int(chunk % 2);
    const Positions<T>& positions = shared.positions[now];
    dh.store_rounded(dstates + scan.saved_at(sequence, head, chunk) + first * columns, rows, columns);
    __pipeline_wait_prior(0);
    __syncthreads();
    read(chunk - 1);
    __pipeline_commit();
    dh.keep(positions);
    const uint32_t turned_at = Square::as_left() ^ Square::step(strip);
    const uint32_t right_at = shared_address(shared.c[now]) + Columns::as_left();
#pragma unroll
    for (int j = 0; j < side / 16; ++j) {
      uint32_t of_strip[4], of_gate[4], left[4];
      load_transposed_matrices(of_strip, (shared_address(shared.dy[now]) + turned_at) + j * 16 * Square::pitch);
      if (scan.z)
        load_transposed_matrices(of_gate, (shared_address(shared.z[now]) + turned_at) + j * 16 * Square::pitch);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = j * 16 + half * 8 + int(threadIdx.x) % 4 * 2;
        const float2 kept = *reinterpret_cast<const float2*>(positions.from_state + i);
        const int2 since = *reinterpret_cast<const int2*>(positions.first + i);
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          uint32_t pair = of_strip[2 * t + half];
          float low = low_of_pair(pair), high = high_of_pair(pair);
          if (scan.z) {
            low *= ChunkScan<T>::Gate::gate(low_of_pair(of_gate[2 * t + half]));
            high *= ChunkScan<T>::Gate::gate(high_of_pair(of_gate[2 * t + half]));
          }
          left[2 * half + t] = rounded_pair<T>(since.x < 0 ? kept.x * low : 0.f, since.y < 0 ? kept.y * high : 0.f);
        }
      }
      dh.template add_product<Columns>(left, right_at, j * 16);
    }
  }
  dh.store(g.dstate + scan.state_at(sequence, head) + first * columns, rows, columns);
}

}  // namespace internal
}  // namespace baracuda
