// Kernels of which each thread has some cells of some rows.
#pragma once

#include <algorithm>

#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int cells_block = 256;

// Blocks along the cells of a row, by rows.
inline dim3 blocks_for(int64_t rows, int64_t cells) {
  int64_t of_row = std::min<int64_t>(ceil_div(cells, cells_block), std::max<int64_t>(1, 132 * 32 / rows));
  return {unsigned(of_row), unsigned(std::min<int64_t>(rows, 65535)), 1};
}

// Calls body(row, cell) for so many cells of each row.
template <class Body>
__device__ void each_cell(int64_t rows, int64_t cells, const Body& body) {
  int64_t step = int64_t(gridDim.x) * cells_block;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
    for (int64_t i = int64_t(blockIdx.x) * cells_block + threadIdx.x; i < cells; i += step) body(row, i);
}

}  // namespace internal
}  // namespace baracuda
