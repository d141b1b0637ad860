// The packed rows pattern for x in 16-bit floats, on tensor cores. One row of x has kernels of its own: for formats
// whose weights go straight to registers, as they are or by a table, for one large matrix, and for all others, these
// two with the same bits. Many rows of x and a large matrix have another one.
#pragma once

#include "packed_row_direct_cuda.h"
#include "packed_row_mma_cuda.h"
#include "packed_row_ring_cuda.h"
#include "packed_row_table_cuda.h"
#include "packed_rows_mma_cuda.h"

namespace baracuda {
namespace internal {

template <class T, class Format>
Status packed_rows_of(const Executor& executor, const PackedRows<Format>& work) {
  if (work.count > 1) return packed_mma<T>(executor, work);
  if constexpr (packed_direct_serves<Format>)
    if (packed_direct_is_faster(work)) return packed_row_direct<T>(executor, work);
  if constexpr (packed_ring_serves<Format>)
    if (packed_ring_is_faster<T>(work)) return packed_row_ring<T>(executor, work);
  if constexpr (packed_table_serves<Format>)
    return packed_table_is_faster<T>(work) ? packed_row_table<T>(executor, work) : packed_mma<T>(executor, work);
  else
    return packed_row_mma<T>(executor, work);
}

}  // namespace internal

// Products by the warpgroups of Hopper (packed_wgmma_cuda.h), which files of their own compile: whether they are faster
// and were launched, with what status.
template <class Format>
bool packed_rows_wgmma(const Executor& executor, const PackedRows<Format>& work, Status& status);

// Of x in half precision.
template <class Format>
Status packed_rows_half(const Executor& executor, const PackedRows<Format>& work) {
  if (work.batches * work.rows * work.count == 0) return {};
  if (std::max(work.columns(), work.blocks * Format::bytes) >= narrow_reach)
    return {"rows of 2^31 elements or bytes and more are too long"};
  if (Status status; packed_rows_wgmma(executor, work, status)) return status;
  if (work.dtype == RowDtype::bf16) return internal::packed_rows_of<BFloat16>(executor, work);
  return internal::packed_rows_of<Half>(executor, work);
}

}  // namespace baracuda
