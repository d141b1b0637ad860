// C B^T of the chunks of a chunk scan, on tensor cores: once for all heads that share B and C.
//
// A block has a chunk, and writes the ten blocks of 16 x 16 of the lower triangle in float32, as the lanes of the
// scan's warps have them: each reads 16 bytes at a time.
#pragma once

#include <cuda_pipeline.h>

#include "chunk_positions_cuda.h"
#include "mma_rows_cuda.h"
#include "uniform_warp_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int chunk_side = scan_chunk<BFloat16>, unit_warps = chunk_side / mma_rows;

// What a warp has of a chunk: three blocks, and the last warp, which finds decays, one.
struct ChunkCb {
  static constexpr int each = 3, block = mma_rows * mma_rows / 4;  // in float4
  static constexpr int64_t of_chunk = (each * (unit_warps - 1) + 1) * block;
  float4 part[each][2];

  static __device__ int count(int strip) { return strip == unit_warps - 1 ? 1 : each; }
  // Where in the chunk a block is, in blocks: the first 16 positions have one, which is the third warp's last.
  static __device__ int row(int k, int strip) { return strip == 3 ? 3 : strip == 2 && k == 2 ? 0 : 3 - strip; }
  static __device__ int column(int k, int strip) { return strip == 3 ? 3 : strip == 2 && k == 2 ? 0 : k; }
  // Where a lane's part of a block begins; that of its second half is 32 further on.
  static __device__ int offset(int k, int strip) { return (strip * each + k) * block + int(threadIdx.x) % 32; }

  __device__ void load(const float4* chunk, int strip) {
#pragma unroll
    for (int k = 0; k < each; ++k)
      if (k < count(strip))
        part[k][0] = __ldg(chunk + offset(k, strip)), part[k][1] = __ldg(chunk + offset(k, strip) + 32);
  }
};

template <int width>
struct CbShared {
  alignas(1024) BFloat16 b[chunk_side * width], c[chunk_side * width];
};

template <int width>
__global__ void __launch_bounds__(unit_warps * 32) chunk_cb(ChunkScan<BFloat16> scan, float4* products) {
  using Columns = MmaTile<BFloat16, width, chunk_side>;
  using Source = MmaSource<Columns, unit_warps * 32>;
  extern __shared__ __align__(1024) unsigned char bytes[];
  CbShared<width>& shared = *reinterpret_cast<CbShared<width>*>(bytes);
  const ChunkShape& shape = scan.shape;
  const int64_t chunks = scan.chunks(), of_shared = int64_t(blockIdx.x) / chunks;
  const int64_t sequence = of_shared / shape.shared, which = of_shared - sequence * shape.shared;
  const int64_t begin = (int64_t(blockIdx.x) - of_shared * chunks) * chunk_side;
  const int64_t from = scan.b_at(sequence, begin, which), stride = shape.shared * shape.columns;
  const int count = int(min(shape.length - begin, int64_t(chunk_side))), columns = int(shape.columns);
  Source(scan.b + from, stride, columns).read(shared_address(shared.b), count);
  Source(scan.c + from, stride, columns).read(shared_address(shared.c), count);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  const uint32_t b_at = shared_address(shared.b) + Columns::as_right();
  const uint32_t c_at = shared_address(shared.c) + Columns::as_left();
  const int strip = uniform_warp();
  float4* to = products + blockIdx.x * ChunkCb::of_chunk;
#pragma unroll 1
  for (int k = 0; k < ChunkCb::count(strip); ++k) {
    MmaRows<1, 16> product;
    product.clear();
    product.template add_product<width / 16, Columns, Columns>(
        c_at + ChunkCb::row(k, strip) * mma_rows * Columns::pitch,
        b_at + ChunkCb::column(k, strip) * mma_rows * Columns::pitch);
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const float* value = product.part[0][t];
      to[ChunkCb::offset(k, strip) + t * 32] = {value[0], value[1], value[2], value[3]};
    }
  }
}

// Computes those of a scan, in the workspace.
template <int width>
Status launch_chunk_cb(Executor& executor, const ChunkScan<BFloat16>& scan, float4*& products) {
  const int64_t blocks = scan.shape.sequences() * scan.shape.shared * scan.chunks();
  products = executor.scratch<float4>(blocks * ChunkCb::of_chunk);
  if (!products) return small_workspace;
  return launch_chunks(executor, chunk_cb<width>, blocks, unit_warps * 32, int64_t(sizeof(CbShared<width>)), scan,
                       products);
}

}  // namespace internal
}  // namespace baracuda
