// Copies of boxes of arrays to shared memory by one instruction. Lines of a box have 128 bytes, of which chunk c of 16
// bytes of line l is stored at chunk c ^ l % 8, as tensor cores read them without conflicts. What is outside of the
// array becomes 0. For Hopper.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "copy_bulk_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int box_columns = 64;  // of 16 bits

// The driver's function, found once, without linking to the driver; null if it has none.
inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    const bool is_found = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
    return is_found ? PFN_cuTensorMapEncodeTiled_v12000(function) : nullptr;
  }();
  return encoder;
}

// An array [arrays, rows, columns] of 16 bits, of which a box has `box_rows` rows. Rows begin at multiples of 16 bytes.
inline Status tensor_map(CUtensorMap& map, const void* at, int64_t arrays, int64_t rows, int64_t columns,
                         int box_rows) {
  const auto encoder = tensor_map_encoder();
  if (!encoder) return {"the driver has no tensor maps"};
  const cuuint64_t extents[3] = {cuuint64_t(columns), cuuint64_t(rows), cuuint64_t(arrays)};
  const cuuint64_t strides[2] = {cuuint64_t(2 * columns), cuuint64_t(2 * rows * columns)};
  const cuuint32_t box[3] = {box_columns, cuuint32_t(box_rows), 1}, steps[3] = {1, 1, 1};
  const CUresult result = encoder(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(at), extents, strides,
                                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return {result == CUDA_SUCCESS ? nullptr : "the driver refused a tensor map"};
}

#if __CUDA_ARCH__ >= 900
// The box whose first element is at this column and row of an array, to a multiple of 1024 bytes.
__device__ inline void copy_box(uint32_t to, const CUtensorMap& map, int column, int row, int array,
                                CopyBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(to),
      "l"(&map), "r"(barrier.address()), "r"(column), "r"(row), "r"(array)
      : "memory");
}
// The same for the blocks of a cluster whose bits are set, each of which has the box and the barrier at the same
// address.
__device__ inline void copy_box_to_blocks(uint32_t to, const CUtensorMap& map, int column, int row, int array,
                                          CopyBarrier& barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(&map), "r"(barrier.address()), "r"(column), "r"(row), "r"(array), "h"(blocks)
      : "memory");
}
#endif

}  // namespace internal
}  // namespace baracuda
