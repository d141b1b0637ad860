// The unpack pattern on a CUDA grid: a thread has one or two times four bytes of a unit's 16, each of which are eight
// weights, four in each part, maybe in several units. It reads all of them before it writes. Neighbors write
// neighboring weights.
#pragma once

#include "unpack.h"

namespace baracuda {
namespace internal {

inline constexpr int unpack_threads = 256;

// Neighboring words of a unit that a thread unpacks. Where factors take some instructions, and parts have their own,
// two: in 16-bit floats it then writes 16 bytes of each part.
template <class Format, class Out>
inline constexpr int unpack_words = Format::units_share && sizeof(Out) == 2 ? 2 : 1;

// Units of a thread. Factors that are arrays are further loads, so that more has to be on the way.
template <class Format>
inline constexpr int unpack_units = Format::has_arrays ? 2 : 1;

// A thread's words of a unit.
template <class Format, class Index, int words>
struct UnpackItem {
  Index block;
  int unit, first;

  __device__ explicit UnpackItem(int64_t item) {
    constexpr int of_unit = 4 / words, of_block = Format::block / 32 * of_unit;
    block = Index(item / of_block), unit = int(item % of_block) / of_unit, first = int(item % of_unit) * words;
  }
};

template <class Format, class Out, class Index>
__global__ void __launch_bounds__(unpack_threads)
    unpack_kernel(PackedBlocks<Format> from, int64_t items, int64_t groups, Divisor<Index> row_blocks,
                  Divisor<Index> group_blocks, Out* out) {
  using namespace packed;
  constexpr int words = unpack_words<Format, Out>, units = unpack_units<Format>;
  using Item = UnpackItem<Format, Index, words>;
  __shared__ float table[16];
  if constexpr (Format::has_table)
    if (threadIdx.x < 16) table[threadIdx.x] = table_entry<Format>(threadIdx.x);
  int64_t first = int64_t(blockIdx.x) * (unpack_threads * units) + threadIdx.x;
  Bytes bytes[units][words][2];
  Factors by[units][2];
#pragma unroll
  for (int u = 0; u < units; ++u) {
    Item item(min(first + u * unpack_threads, items - 1));
    const uint8_t* block = from.block(item.block);
#pragma unroll
    for (int w = 0; w < words; ++w) Format::unpack(block, item.unit, item.first + w, bytes[u][w][0], bytes[u][w][1]);
    if constexpr (Format::units_share) {
      Format::two_factors(block, item.unit / 2, by[u]);
    } else {
      int64_t group = 0;
      if constexpr (Format::has_arrays) {
        Index row = row_blocks.quotient(item.block);
        group = row * groups + group_blocks.quotient(item.block - row * row_blocks.value);
      }
      by[u][0] = from.factors(block, group, item.unit, 0);
      by[u][1] = Format::parts_share ? by[u][0] : from.factors(block, group, item.unit, 1);
    }
  }
  if constexpr (Format::has_table) __syncthreads();
#pragma unroll
  for (int u = 0; u < units; ++u) {
    if (first + u * unpack_threads >= items) return;
    Item item(first + u * unpack_threads);
    Out* to = out + int64_t(item.block) * Format::block;
    // Runs of neighbors are the fours of both parts, or those of the words of a part.
    constexpr bool turns = Format::interleaved;
    constexpr int run = turns ? 2 : words, runs = 2 * words / run;
#pragma unroll
    for (int n = 0; n < runs; ++n) {
      Vector<Out, run * width> neighbors;
#pragma unroll
      for (int m = 0; m < run; ++m) {
        int part = turns ? m : n, w = turns ? n : m;
        float weight[width];
        weights<Format>(bytes[u][w][part], by[u][part], table, weight);
#pragma unroll
        for (int j = 0; j < width; ++j) neighbors.lane[m * width + j] = Out(weight[j]);
      }
      int part = turns ? 0 : n, w = turns ? n : 0;
      store<run * width>(to + position<Format>(item.unit, part, item.first + w), neighbors);
    }
  }
}

template <class Index, class Format, class Out>
Status unpack_by(const Executor& executor, const PackedBlocks<Format>& from, int64_t rows, int64_t blocks,
                 int64_t groups, Out* out) {
  constexpr int of_block = unpack_threads * unpack_units<Format>;
  int64_t items = rows * blocks * (Format::block / 8 / unpack_words<Format, Out>);
  unpack_kernel<<<unsigned(ceil_div(items, of_block)), unpack_threads, 0, executor.stream>>>(
      from, items, groups, Divisor<Index>(blocks), Divisor<Index>(groups ? blocks / groups : 1), out);
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
