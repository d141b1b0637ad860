// The unpack pattern on CPU threads: ranges of neighboring blocks.
#pragma once

#include <algorithm>

#include "unpack.h"

namespace baracuda {

namespace internal {

// Weights of blocks [first, first + count) of a row whose factors begin at `group`.
template <class Format, class Out>
void unpack_blocks(const PackedBlocks<Format>& from, int64_t row, int64_t first, int64_t count, int64_t blocks,
                   int64_t groups, const float* table, Out* out) {
  using namespace packed;
  int64_t per_group = groups ? blocks / groups : 1;
  for (int64_t k = first; k < first + count; ++k, out += Format::block) {
    const uint8_t* block = from.block(row * blocks + k);
    int64_t group = Format::has_arrays ? row * groups + k / per_group : 0;
    for (int unit = 0; unit < Format::block / 32; ++unit)
      for (int i = 0; i < 16 / width; ++i) {
        Bytes bytes[2];
        Format::unpack(block, unit, i, bytes[0], bytes[1]);
        for (int part = 0; part < 2; ++part) {
          float weight[width];
          weights<Format>(bytes[part], from.factors(block, group, unit, part), table, weight);
          Out* to = out + position<Format>(unit, part, i);
          for (int j = 0; j < width; ++j) to[j] = Out(weight[j]);
        }
      }
  }
}

}  // namespace internal

// `rows` rows of `blocks` blocks, each with so many groups, as rows of weights.
template <class Format, class Out>
Status unpack_rows(const Executor& executor, const PackedBlocks<Format>& from, int64_t rows, int64_t blocks,
                   int64_t groups, Out* out) {
  constexpr int64_t weights = 1 << 14;
  int64_t range = std::max<int64_t>(1, weights / Format::block), ranges = ceil_div(blocks, range);
  float table[16];
  for (int i = 0; i < 16; ++i) table[i] = table_entry<Format>(i);
  parallel_for(executor, rows * ranges, std::min(range, blocks) * Format::block, [&](int64_t task) {
    int64_t row = task / ranges, first = task % ranges * range;
    internal::unpack_blocks(from, row, first, std::min(range, blocks - first), blocks, groups, table,
                            out + (row * blocks + first) * Format::block);
  });
  return {};
}

}  // namespace baracuda
