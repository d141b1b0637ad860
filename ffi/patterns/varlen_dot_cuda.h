// What the others of its row give a slope of attention, on a CUDA grid: sum(dy y) - dlse of each row, a warp for a row.
#pragma once

#include "varlen.h"

namespace baracuda {
namespace internal {

inline constexpr int dot_block = 256;

template <class T>
__global__ void __launch_bounds__(dot_block) varlen_dots(VarlenGradient<T> gradient, int64_t rows, int64_t columns) {
  using Wide = Accumulator<T>;
  int64_t row = (int64_t(blockIdx.x) * dot_block + threadIdx.x) / 32;
  if (row >= rows) return;
  Wide sum = 0;
  for (int64_t c = threadIdx.x % 32; c < columns; c += 32) sum += gradient.product(row * columns + c);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) gradient.dot[row] = sum - gradient.dlse[row];
}

template <class T>
Status varlen_dots_of(const Executor& executor, const VarlenShape& shape, const VarlenGradient<T>& gradient) {
  int64_t rows = shape.batches * shape.queries * shape.heads, blocks = ceil_div(rows * 32, dot_block);
  if (blocks > (int64_t(1) << 31) - 1) return {"there are more than 2^34 rows of queries and heads"};
  if (rows > 0) varlen_dots<T><<<unsigned(blocks), dot_block, 0, executor.stream>>>(gradient, rows, shape.values);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
