// Kernels of which each thread has some elements of some rows.
#pragma once

#include <algorithm>

#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int elements_block = 256;

// Blocks along the elements of a row, by rows.
inline dim3 blocks_for(int64_t rows, int64_t elements) {
  int64_t of_row = std::min<int64_t>(ceil_div(elements, elements_block), std::max<int64_t>(1, 132 * 32 / rows));
  return {unsigned(of_row), unsigned(std::min<int64_t>(rows, 65535)), 1};
}

// Calls body(row, element) for so many elements of each row.
template <class Body>
__device__ void each_element(int64_t rows, int64_t elements, const Body& body) {
  int64_t step = int64_t(gridDim.x) * elements_block;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
    for (int64_t i = int64_t(blockIdx.x) * elements_block + threadIdx.x; i < elements; i += step) body(row, i);
}

}  // namespace internal
}  // namespace baracuda
