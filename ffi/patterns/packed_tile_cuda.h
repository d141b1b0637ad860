// The copies of tiles of W that tensor cores multiply with, from two rows of a lane's, r and r + 8 of its warp's 16.
// Four lanes have the same rows: each copies every fourth 16 bytes, from the multiple of 16 before a tile on.
#pragma once

#include "copy_async_cuda.h"
#include "divisor.h"
#include "keep_cuda.h"
#include "packed_rows.h"

namespace baracuda {
namespace internal {

inline constexpr int packed_mma_tile = 256;

// The bytes of a tile of a row, and its room in shared memory.
template <class Format>
struct PackedTile {
  static constexpr int blocks = packed_mma_tile / Format::block, tile_bytes = blocks * Format::bytes;
  // A row of a tile begins at a multiple of the power of two that divides a block's bytes.
  static constexpr int step = Format::bytes & -Format::bytes, most_past = step < 16 ? 16 - step : 0;
  static constexpr int chunks = (most_past + tile_bytes + 15) / 16;
  // An odd number of 16 bytes: the same bytes of eight rows are in different banks.
  static constexpr int row_room = 16 * (chunks | 1), weights = 16 * row_room;

  // How many bytes after a multiple of 16 a tile of a row begins.
  static __device__ int past(const uint8_t* row, int tile) {
    if constexpr (most_past == 0) return 0;
    return int((uint32_t(reinterpret_cast<uintptr_t>(row)) + uint32_t(tile) * tile_bytes) & 15);
  }
};

template <class Format>
struct PackedTileCopies {
  using Tile = PackedTile<Format>;
  const uint8_t *from[2], *end;  // the lane's first 16 bytes of its rows, and the end of the data
  int row_bytes, left;           // of the data from the second of the rows on, as far as they matter

  // Lane c of four, of rows that begin where row(h) says.
  template <class Row>
  __device__ PackedTileCopies(const PackedRows<Format>& work, int c, const Row& row)
      : end(work.weights.block(work.matrices * work.rows * work.blocks)),
        row_bytes(int(work.blocks * Format::bytes)),
        left(0) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      from[h] = work.weights.data + row(h) * row_bytes + 16 * c;
      keep(from[h]);
    }
    if constexpr (Tile::most_past > 0) left = int(min(int64_t(end - from[1]) + 16 * c, int64_t(0x7fffffff)));
  }

  __device__ int past(int h, int tile) const { return Tile::past(from[h], tile); }

  // To where the lane's first 16 bytes of its first row go.
  __device__ void copy(int tile, int c, unsigned char* to_lane) const {
    int offset = tile * Tile::tile_bytes, rest = row_bytes - offset;
    // All the chunks of a tile that is within its row and followed by enough data, else those that are needed.
    bool whole = Tile::blocks == 1 || rest >= Tile::tile_bytes;
    if (Tile::most_past > 0) whole = whole && left - offset >= 16 * Tile::chunks;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int before = past(h, tile);
      const uint8_t* begin = from[h] + (offset - before);
      unsigned char* to = to_lane + 8 * h * Tile::row_room;
      if (whole) {
#pragma unroll
        for (int k = 0; k < Tile::chunks; k += 4)
          if (k + c < Tile::chunks) copy_async(to + 16 * k, begin + 16 * k, 16);
      } else {
#pragma unroll 1
        for (int count = before + min(Tile::tile_bytes, rest) - 16 * c; count > 0; count -= 64) {
          copy_async(to, begin, Tile::most_past == 0 ? 16 : int(min(int64_t(16), int64_t(end - begin))));
          to += 64, begin += 64;
        }
      }
    }
  }
};

// Factors that are arrays, of a lane's two rows and the blocks 2 c and 2 c + 1 of a tile. Lanes read what they need
// straight to registers: copies to shared memory of four bytes each took longer than the weights.
struct PackedArrays {
  float scale[2][2], zero[2][2];
};

template <class Format>
struct PackedArrayLoads {
  const float *scale[2], *zero[2];

  // Of the rows of all matrices that row(h) says.
  template <class Row>
  __device__ PackedArrayLoads(const PackedRows<Format>& work, const Row& row) {
    if constexpr (Format::has_arrays)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        int64_t first_group = row(h) * work.groups;
        scale[h] = work.weights.scale + first_group;
        keep(scale[h]);
        if constexpr (Format::has_zero) {
          zero[h] = work.weights.zero + first_group;
          keep(zero[h]);
        }
      }
  }

  // In place of those of a block that is not there, the last one's.
  __device__ PackedArrays load(int tile, int c, int blocks, Divisor<int32_t> group_blocks) const {
    PackedArrays arrays = {};
    if constexpr (Format::has_arrays)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int block = tile * PackedTile<Format>::blocks + 2 * c + e;
        uint32_t group = uint32_t(group_blocks.quotient(min(block, blocks - 1)));
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          arrays.scale[h][e] = __ldg(scale[h] + group);
          if constexpr (Format::has_zero) arrays.zero[h][e] = __ldg(zero[h] + group);
        }
      }
    return arrays;
  }
};

}  // namespace internal
}  // namespace baracuda
