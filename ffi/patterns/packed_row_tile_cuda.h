// A tile of 16 rows of packed weights times one row of x, on tensor cores.
//
// A product has eight columns. Those are eight groups of 32 neighbors of x, or of 16, all of the same row: column n of
// the product with the weights of group n is what is wanted, and the other columns are of no use. So a lane has the
// elements of x that it multiplies a tile with in four registers, reads no others, and has the sums of the groups 2 c
// and 2 c + 1 (or 4 c ... 4 c + 3) of two rows, whose factors it decodes itself. Sums of x of all groups are two
// products.
#pragma once

#include "mma_cuda.h"
#include "packed_pairs_cuda.h"
#include "packed_rows.h"
#include "packed_rows_mma_cuda.h"

namespace baracuda {
namespace internal {

// Of entries in shared memory. Those that are sums of two floats have packed_row_table_cuda.h.
template <class Format>
inline constexpr int packed_row_entries = Format::has_table ? 16 * entry_room : 0;

// The elements of x that a lane multiplies a tile with.
struct PackedRowElements {
  uint32_t pairs[2][2];
};

// They are in the lane's column r of a product, four neighbors in two units, or in two parts of one.
template <class Format>
struct PackedRowColumn {
  int at[2], last;

  __device__ PackedRowColumn(int columns, int r, int c) : last(columns - packed::width) {
    constexpr int units_of_block = Format::block / 32;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      int unit = Format::parts_share ? r : (r & ~1) + j, part = Format::parts_share ? j : r % 2;
      at[j] = unit / units_of_block * Format::block + packed::position<Format>(unit % units_of_block, part, c);
    }
  }

  template <class T>
  __device__ PackedRowElements load(const T* x, int tile) const {
    PackedRowElements elements;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      int k = tile * packed_mma_tile + at[j];
      // Factors of blocks that are not there are 0, whatever these are multiplied with.
      if constexpr (PackedTile<Format>::blocks > 1) k = min(k, last);
      uint2 some = __ldg(reinterpret_cast<const uint2*>(x + k));
      elements.pairs[j][0] = some.x, elements.pairs[j][1] = some.y;
    }
    return elements;
  }
};

// Sums a tile's products of two rows, which begin at `row`, as far as they are those of lane c of the four that have
// the rows.
template <class T, class Format>
__device__ __forceinline__ void multiply_row_tile(const uint8_t* const (&row)[2], int tile, int blocks,
                                                  const PackedRowElements& x, const PackedArrays& arrays, int c,
                                                  const unsigned char* entries, int at_lane, float (&sums_of_rows)[2]) {
  using namespace packed;
  using Tile = PackedMmaMemory<Format, 1, 1>;
  static_assert(value_parts<Format> == 1);
  constexpr int units_of_block = Format::block / 32;
  // Two groups of a lane, or four.
  constexpr bool whole_groups = Tile::groups == 8;
  constexpr int kinds = whole_groups ? 1 : 2;
  constexpr bool has_sums = sums_of_x<T, Format>;
  constexpr float excess = pairs_excess<T, Format>;
  constexpr uint32_t ones = std::is_same_v<T, BFloat16> ? 0x3f803f80 : 0x3c003c00;

  // Of a lane: by the kind of a group, the half of the rows, and the column.
  float mine[kinds][2][2] = {};
#pragma unroll
  for (int first = 0; first < 8; first += 2) {
    float sums[kinds][2][4] = {};  // of two groups
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      int u = first + side, block = u / units_of_block, unit = u % units_of_block;
      Bytes bytes[2][2];
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if constexpr (Format::has_table)
          bytes[h][0] = Format::packed(row[h] + block * Format::bytes, unit, c);
        else
          Format::unpack(row[h] + block * Format::bytes, unit, c, bytes[h][0], bytes[h][1]);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        uint32_t first_pair[2][1], second_pair[2][1];
#pragma unroll
        for (int h = 0; h < 2; ++h)
          if constexpr (Format::has_table)
            entry_pairs<Format>(bytes[h][0], part, entries, at_lane, first_pair[h], second_pair[h]);
          else
            value_pairs<T, Format>(bytes[h][part], first_pair[h], second_pair[h], EntryBytes{});
        auto& sum = sums[whole_groups ? 0 : side][Format::parts_share ? side : part];
        const auto& with = x.pairs[Format::parts_share ? part : side];
        uint32_t a[4] = {first_pair[0][0], first_pair[1][0], second_pair[0][0], second_pair[1][0]};
        multiply_add<T>(sum, a, with);
      }
    }
#pragma unroll
    for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int e = 0; e < 2; ++e) mine[kind][h][e] = c == first / 2 ? sums[kind][e][2 * h + e] : mine[kind][h][e];
  }

  float sums_x[kinds][4] = {};
  if constexpr (has_sums) {
    uint32_t a[4] = {ones, ones, ones, ones};
#pragma unroll
    for (int j = 0; j < 2; ++j) multiply_add<T>(sums_x[whole_groups ? 0 : j], a, x.pairs[j]);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    Factors by[kinds][2];
    if constexpr (Format::has_arrays) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        bool there = tile * Tile::blocks + 2 * c + e < blocks;
        by[0][e].scale = there ? arrays.scale[h][e] : 0.f, by[0][e].shift = 0;
        if constexpr (Format::entry_multiple > 1) by[0][e].scale *= 1.0f / Format::entry_multiple;
        if constexpr (Format::has_zero) by[0][e].shift = -(by[0][e].scale * (excess + arrays.zero[h][e]));
        if constexpr (has_sums && !Format::has_zero) by[0][e].shift = -(by[0][e].scale * excess);
      }
    } else {
      if constexpr (Format::units_share) {
        Format::two_factors(row[h], c, by[0]);
      } else {
#pragma unroll
        for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            int unit = whole_groups ? 2 * c + e : 2 * c + kind, part = whole_groups ? 0 : e;
            by[kind][e] = {};
            if (Tile::blocks == 1 || tile * Tile::blocks + unit < blocks)
              by[kind][e] =
                  Format::factors(row[h] + unit / units_of_block * Format::bytes, unit % units_of_block, part);
            if constexpr (Format::entry_multiple > 1) by[kind][e].scale *= 1.0f / Format::entry_multiple;
          }
      }
      if constexpr (excess > 0)
#pragma unroll
        for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            by[kind][e].shift =
                Format::has_shift ? fmaf(-excess, by[kind][e].scale, by[kind][e].shift) : -(by[kind][e].scale * excess);
    }
    float sum = 0;
#pragma unroll
    for (int kind = 0; kind < kinds; ++kind)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        sum = fmaf(by[kind][e].scale, mine[kind][h][e], sum);
        if constexpr (has_sums) sum = fmaf(by[kind][e].shift, sums_x[kind][e], sum);
      }
    sums_of_rows[h] = sum;
  }
}

}  // namespace internal
}  // namespace baracuda
