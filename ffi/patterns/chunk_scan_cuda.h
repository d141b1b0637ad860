// The chunk scan pattern on a CUDA grid. A block has rows of states in registers, and walks a sequence in chunks. What
// the positions of a chunk give each other is a product of matrices, and so is what the state before gives them and
// what they give the state. Decays are of differences of sums over the chunk.
#pragma once

#include "chunk_scan_any_cuda.h"
#include "chunk_scan_mma_cuda.h"
#ifdef BARACUDA_SM90A
#include "chunk_scan_wgmma_cuda.h"
#endif

namespace baracuda {

// y; where they are not null, the last state and the states before each chunk.
template <class T>
Status chunk_scan(const Executor& executor, const ChunkScan<T>& scan, T* y, Accumulator<T>* last,
                  SavedState<T>* states) {
  using namespace internal;
  return by_columns(scan.shape, [&](auto width_of) {
    constexpr int width = decltype(width_of)::value;
#ifdef BARACUDA_SM90A
    if constexpr (std::is_same_v<T, BFloat16>)
      if (suits_forward_wgmma(scan)) return launch_chunk_forward_wgmma(executor, scan, y, last, states);
#endif
    if constexpr (std::is_same_v<T, BFloat16>)
      if (is_for_mma(scan.shape)) return launch_chunk_forward_mma<width>(executor, scan, y, last, states);
    return launch_chunk_forward<width>(executor, scan, y, last, states);
  });
}

}  // namespace baracuda
