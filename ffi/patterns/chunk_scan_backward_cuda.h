// Gradients of the chunk scan pattern on a CUDA grid, in three steps.
//
// The cotangents of states: a block has rows of some and walks the chunks from the end. It writes that of the
// state after each chunk.
//
// Then a block has a chunk and some of the heads that share B and C, one after the other. With the states before and
// their cotangents after, chunks do not depend on each other. What heads give for B and C is added in registers.
//
// At last the sums of blocks, if several share a chunk, and those of chunks, are added. All is in an order that shapes
// alone decide.
#pragma once

#include "chunk_scan_any_backward_cuda.h"
#include "chunk_scan_mma_backward_cuda.h"
#ifdef BARACUDA_SM90A
#include "chunk_dstates_wgmma_cuda.h"
#include "chunk_scan_wgmma_backward_cuda.h"
#endif

namespace baracuda {
namespace internal {

template <int width>
Status launch_chunk_backward_mma(Executor executor, const ChunkScan<BFloat16>& scan, const ChunkGradients<BFloat16>& g,
                                 const ChunkSums<BFloat16>& sums, int64_t blocks) {
  const int64_t tiles = ceil_div(scan.shape.rows, chunk_side);
  Positions<BFloat16>* decays = nullptr;
  Status status = launch_chunk_decays(executor, scan, decays);
  if (!status.ok()) return status;
#ifdef BARACUDA_SM90A
  if (suits_backward_wgmma(scan, g, sums)) {
    status = launch_chunk_dstates_wgmma(executor, scan, g, sums.dstates, decays);
    return status.ok() ? launch_chunk_backward_wgmma(executor, scan, g, sums, blocks, decays) : status;
  }
#endif
  status = launch_chunks(executor, chunk_dstates_mma<width>, scan.shape.sequences() * scan.shape.heads * tiles,
                         unit_warps * 32, sizeof(DstatesMmaShared<width>), scan, g, sums.dstates, tiles, decays);
  if (!status.ok()) return status;
  return launch_chunks(executor, chunk_backward_mma<width>, blocks, backward_threads, sizeof(BackwardMmaShared<width>),
                       scan, g, sums, decays);
}

}  // namespace internal

template <class T>
Status chunk_scan_backward(Executor executor, const ChunkScan<T>& scan, const ChunkGradients<T>& g) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const ChunkShape& shape = scan.shape;
  return by_columns(shape, [&](auto width_of) -> Status {
    constexpr int width = decltype(width_of)::value;
    const int64_t chunks = scan.chunks(), all_heads = shape.sequences() * shape.heads;
    ChunkSums<T> sums{};
    sums.parts = head_parts(shape.batches * chunks * shape.shared, shape.heads_each());
    sums.dstates = executor.scratch<SavedState<T>>(all_heads * chunks * shape.state_size());
    const int64_t of_shared = shape.sequences() * shape.length * shape.shared * 2 * shape.columns;
    const bool has_parts = sums.parts > 1;
    if (has_parts) sums.shared = executor.scratch<Wide>(sums.parts * of_shared);
    sums.heads = executor.scratch<Wide>(all_heads * chunks * (2 + shape.skips));
    if (!sums.dstates || (has_parts && !sums.shared) || !sums.heads) return small_workspace;
    const int64_t blocks = shape.sequences() * chunks * shape.shared * sums.parts;
    Status status;
    if constexpr (std::is_same_v<T, BFloat16>)
      status = is_for_mma(shape) ? launch_chunk_backward_mma<width>(executor, scan, g, sums, blocks)
                                 : launch_chunk_backward<width>(executor, scan, g, sums, blocks);
    else
      status = launch_chunk_backward<width>(executor, scan, g, sums, blocks);
    const int64_t of_heads = shape.groups * shape.heads * (2 + shape.skips) * 32;
    for (int64_t elements : {of_shared, of_heads})
      if (status.ok()) status = check_chunk_grid(ceil_div(elements, product_block));
    if (!status.ok()) return status;
    if (has_parts && of_shared > 0)
      chunk_shared<T><<<unsigned(ceil_div(of_shared, product_block)), product_block, 0, executor.stream>>>(shape, sums,
                                                                                                           g.db, g.dc);
    if (of_heads > 0)
      chunk_heads<T><<<unsigned(ceil_div(of_heads, product_block)), product_block, 0, executor.stream>>>(
          shape, sums, chunks, g.da, g.dbias, g.dskip);
    return launched();
  });
}

}  // namespace baracuda
