// The gather pattern on a CUDA grid: each output element computes itself, V neighboring columns of a few rows to a
// thread.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int gather_block = 256, gather_rows = 4;

// A block is `lanes` threads along the columns by gather_block / lanes rows, so no division by an extent; a thread's
// rows are that many apart. All its elements are computed before any is stored, so that their loads are in flight
// together. Where rows are few, several blocks have parts of their columns.
template <int V, class Gather>
__global__ void __launch_bounds__(gather_block)
    gather_elements(Gather element, typename Gather::Element* out, int64_t batches, int64_t rows, int64_t columns,
                    int lanes) {
  int step = gather_block / lanes;
  int64_t first = int64_t(blockIdx.x) * step * gather_rows + threadIdx.x / lanes;
  for (int64_t batch = blockIdx.y; batch < batches; batch += gridDim.y)
    for (int64_t column = (int64_t(blockIdx.z) * lanes + threadIdx.x % lanes) * V; column < columns;
         column += int64_t(gridDim.z) * lanes * V) {
      Vector<typename Gather::Element, V> values[gather_rows];
#pragma unroll
      for (int i = 0; i < gather_rows; ++i)
        if (first + i * step < rows) values[i] = element.template at<V>(batch, first + i * step, column);
#pragma unroll
      for (int i = 0; i < gather_rows; ++i)
        if (int64_t row = first + i * step; row < rows)
          store<V>(out + (batch * rows + row) * columns + column, values[i]);
    }
}

template <int V, class Gather>
Status gather_by(const Executor& executor, const Gather& element, typename Gather::Element* out, int64_t batches,
                 int64_t rows, int64_t columns) {
  constexpr int64_t enough_blocks = 1 << 12, most = 65535;
  int lanes = 1;
  while (lanes < gather_block && lanes * V < columns) lanes *= 2;
  int64_t of_rows = ceil_div(rows, gather_block / lanes * gather_rows);
  int64_t of_columns = std::min(ceil_div(columns, int64_t(lanes) * V), ceil_div(enough_blocks, of_rows * batches));
  dim3 blocks(unsigned(of_rows), unsigned(std::min(batches, most)), unsigned(std::min(of_columns, most)));
  gather_elements<V><<<blocks, gather_block, 0, executor.stream>>>(element, out, batches, rows, columns, lanes);
  return launched();
}

}  // namespace internal

template <class Gather>
Status gather(const Executor& executor, const Gather& element, typename Gather::Element* out, int64_t batches,
              int64_t rows, int64_t columns) {
  constexpr int V = 16 / sizeof(typename Gather::Element);
  if (batches * rows * columns == 0) return {};
  if (columns % V == 0) return internal::gather_by<V>(executor, element, out, batches, rows, columns);
  return internal::gather_by<1>(executor, element, out, batches, rows, columns);
}

}  // namespace baracuda
