// The unpack pattern: each weight of packed blocks, as a float. Blocks are apart from each other.
#pragma once

#include "../kernels/packed/bytes.h"
#include "divisor.h"
#include "executor.h"

namespace baracuda {

// Blocks of a format (kernels/packed), and the arrays of factors of the formats that have these: an element for each
// group of so many blocks.
template <class Format>
struct PackedBlocks {
  const uint8_t* data;
  const float *scale, *zero;

  BARACUDA_HD const uint8_t* block(int64_t k) const { return data + k * Format::bytes; }
  BARACUDA_HD packed::Factors factors(const uint8_t* from, int64_t group, int unit, int part) const {
    if constexpr (Format::has_arrays)
      return {scale[group], 0, Format::has_zero ? zero[group] : 0};
    else
      return Format::factors(from, unit, part);
  }
};

// The entries of a format's table, which a driver puts where lookups are fast; none without a table.
template <class Format>
BARACUDA_HD float table_entry(int i) {
  if constexpr (Format::has_table) return Format::entry(i);
  return 0;
}

}  // namespace baracuda
