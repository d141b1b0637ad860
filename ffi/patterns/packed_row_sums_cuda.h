// Sums of packed rows: a row's, by the definition, and how those of one row of x are written.
#pragma once

#include "divisor.h"
#include "packed_rows.h"

namespace baracuda {
namespace internal {

// The sum of the products of a row of W and one of x, by the definition.
template <class T, class Format>
__device__ __noinline__ float packed_product(const PackedRows<Format>& work, int64_t row, const T* x,
                                             Divisor<int32_t> group_blocks, const float* table) {
  using namespace packed;
  constexpr int units_of_block = Format::block / 32;
  const uint8_t* row_data = work.weights.block(row * work.blocks);
  float sum = 0;
  for (int64_t k = threadIdx.x % 32; k < work.blocks * units_of_block; k += 32) {
    int64_t block = k / units_of_block, group = 0;
    int unit = int(k % units_of_block);
    const uint8_t* from = row_data + block * Format::bytes;
    if constexpr (Format::has_arrays) group = row * work.groups + group_blocks.quotient(int32_t(block));
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      Bytes bytes[2];
      Format::unpack(from, unit, i, bytes[0], bytes[1]);
      for (int part = 0; part < 2; ++part) {
        float weight[width];
        weights<Format>(bytes[part], work.weights.factors(from, group, unit, part), table, weight);
        const T* with = x + block * Format::block + position<Format>(unit, part, i);
        for (int j = 0; j < width; ++j) sum = fmaf(weight[j], float(with[j]), sum);
      }
    }
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

// Writes the rows of y of a matrix from `first` on, a lane's of each, as far as they are `there`. A sum that is not
// finite is added again.
template <class T, class Format>
__device__ __forceinline__ void write_row_sums(const PackedRows<Format>& work, int64_t batch, int64_t first_of_matrix,
                                               int64_t first, bool there, float sum, Divisor<int32_t> group_blocks,
                                               const float* table) {
  int lane = threadIdx.x % 32;
  uint32_t again = __ballot_sync(~0u, there && !(fabsf(sum) <= 3.402823466e38f));
  for (; again != 0; again &= again - 1) {
    int which = __ffs(int(again)) - 1;
    float product = packed_product<T>(work, first_of_matrix + first + which,
                                      static_cast<const T*>(work.x) + batch * work.columns(), group_blocks, table);
    if (lane == which) sum = product;
  }
  if (there) static_cast<T*>(work.y)[batch * work.rows + first + lane] = T(sum);
}

}  // namespace internal
}  // namespace baracuda
