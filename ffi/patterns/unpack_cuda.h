// The unpack pattern on a CUDA grid: a thread for each four bytes of a unit's 16, which are eight weights, four in each
// part. Neighbors write neighboring fours.
#pragma once

#include "unpack.h"

namespace baracuda {
namespace internal {

inline constexpr int unpack_threads = 256;

template <class Format, class Out, class Index>
__global__ void __launch_bounds__(unpack_threads)
    unpack_kernel(PackedBlocks<Format> from, int64_t words, int64_t groups, Divisor<Index> row_blocks,
                  Divisor<Index> group_blocks, Out* out) {
  using namespace packed;
  constexpr int words_of_block = Format::block / 8;
  __shared__ float table[16];
  if constexpr (Format::has_table) {
    if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
    __syncthreads();
  }
  int64_t word = int64_t(blockIdx.x) * unpack_threads + threadIdx.x;
  if (word >= words) return;
  Index k = Index(word / words_of_block);
  int unit = int(word % words_of_block) / 4, i = int(word % 4);
  int64_t group = 0;
  if constexpr (Format::has_arrays) {
    Index row = row_blocks.quotient(k);
    group = row * groups + group_blocks.quotient(k - row * row_blocks.value);
  }
  const uint8_t* block = from.block(k);
  Bytes bytes[2];
  Format::unpack(block, unit, i, bytes[0], bytes[1]);
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    float weight[width];
    weights<Format>(bytes[part], from.factors(block, group, unit, part), table, weight);
    Vector<Out, width> four;
#pragma unroll
    for (int j = 0; j < width; ++j) four.lane[j] = Out(weight[j]);
    store<width>(out + int64_t(k) * Format::block + position<Format>(unit, part, i), four);
  }
}

template <class Index, class Format, class Out>
Status unpack_by(const Executor& executor, const PackedBlocks<Format>& from, int64_t rows, int64_t blocks,
                 int64_t groups, Out* out) {
  int64_t words = rows * blocks * (Format::block / 8);
  unpack_kernel<<<unsigned(ceil_div(words, unpack_threads)), unpack_threads, 0, executor.stream>>>(
      from, words, groups, Divisor<Index>(blocks), Divisor<Index>(groups ? blocks / groups : 1), out);
  return launched();
}

}  // namespace internal

template <class Format, class Out>
Status unpack_rows(const Executor& executor, const PackedBlocks<Format>& from, int64_t rows, int64_t blocks,
                   int64_t groups, Out* out) {
  if (rows * blocks == 0) return {};
  if (rows * blocks < narrow_reach) return internal::unpack_by<int32_t>(executor, from, rows, blocks, groups, out);
  return internal::unpack_by<int64_t>(executor, from, rows, blocks, groups, out);
}

}  // namespace baracuda
