// The grouped pattern on tensor cores, for half precisions whose lines are whole chunks of 16 bytes.
//
// A block multiplies a tile of rows with a tile of columns, over steps of 64 along the axis that is summed over. Either
// tile has lines along that axis, or that are its steps; loaders of both kinds copy the tiles of the next steps while
// those before are multiplied. A warp loads the fragments of the next 16 before it multiplies, also across steps.
#pragma once

#include "grouped_tile_cuda.h"
#include "mma_rows_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int grouped_step = 64;

// A block's tile, its warps, the stages of copies, and how many blocks a multiprocessor is to have.
template <int rows_, int columns_, int warps_down_, int warps_across_, int stages_, int blocks_>
struct GroupedShape {
  static constexpr int rows = rows_, columns = columns_, warps_down = warps_down_, warps_across = warps_across_;
  static constexpr int stages = stages_, blocks = blocks_, threads = 32 * warps_down * warps_across;
  static constexpr int m = rows / warps_down / mma_rows, n = columns / warps_across;  // of a warp
  static constexpr int bytes = stages * (rows + columns) * grouped_step * 2;
};

// Lines that go on along the steps. `of` gives where a line begins, in chunks, or `none`.
template <class Tile, int threads>
struct GroupedLines {
  using T = typename Tile::T;
  static constexpr int together = threads / Tile::chunks, count = Tile::rows / together;
  static_assert(together % 8 == 0 && count > 0);
  static constexpr uint32_t none = ~0u;
  const T* next;
  int columns;
  uint32_t to, line[count];

  template <class Of>
  __device__ GroupedLines(const T* from, int columns_of_line, const Of& of) {
    int number = int(threadIdx.x) % Tile::chunks, row = int(threadIdx.x) / Tile::chunks;
    next = from + number * Tile::chunk;
    columns = columns_of_line - number * Tile::chunk;
    to = Tile::in_bytes(row, number);
#pragma unroll
    for (int i = 0; i < count; ++i) line[i] = of(row + i * together);
  }
  __device__ void fetch(uint32_t tile) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      bool is_one = line[i] != none && columns > 0;
      copy_async(tile + to + i * together * Tile::pitch, next + (is_one ? int64_t(line[i]) * Tile::chunk : 0),
                 is_one ? 16 : 0);
    }
    next += Tile::chunks * Tile::chunk;
    columns -= Tile::chunks * Tile::chunk;
  }
};

// Lines that are steps, one after the other.
template <class Tile, int threads>
struct GroupedSteps {
  MmaSource<Tile, threads> source;
  int lines;

  __device__ GroupedSteps(const typename Tile::T* from, int64_t stride, int columns, int lines)
      : source(from, stride, columns), lines(lines) {}
  __device__ void fetch(uint32_t tile) {
    source.read(tile, lines);
    lines -= Tile::rows;
  }
};

// Lines that are steps, as they are listed. Which ones are next is read a step before.
template <class Tile, int threads>
struct GroupedListedSteps {
  using T = typename Tile::T;
  static constexpr int together = threads / Tile::chunks, count = Tile::rows / together;
  static_assert(together % 8 == 0 && count > 0);
  const T* from;
  const uint32_t* list;
  int64_t stride;
  int lines, size, line[count];
  uint32_t to;

  __device__ GroupedListedSteps(const T* array, int64_t stride, int columns, const uint32_t* listed, int count_of_lines)
      : stride(stride) {
    int number = int(threadIdx.x) % Tile::chunks, row = int(threadIdx.x) / Tile::chunks;
    size = number * Tile::chunk < columns ? 16 : 0;
    from = array + (size ? number * Tile::chunk : 0);
    list = listed + row;
    lines = count_of_lines - row;
    to = Tile::in_bytes(row, number);
    read();
  }
  __device__ void read() {
#pragma unroll
    for (int i = 0; i < count; ++i) line[i] = i * together < lines ? int(list[i * together]) : -1;
  }
  __device__ void fetch(uint32_t tile) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      copy_async(tile + to + i * together * Tile::pitch, from + (line[i] < 0 ? 0 : line[i] * stride),
                 line[i] < 0 ? 0 : size);
    list += Tile::rows;
    lines -= Tile::rows;
    read();
  }
};

// The sum of a block's products, of which a warp has m times 16 rows of n columns.
template <class T, class Shape>
struct GroupedSum {
  static constexpr int m = Shape::m, n = Shape::n, parts = n / 16, inner = grouped_step / 16;
  float part[m][n / 8][4] = {};

  // LeftTile has the rows as lines, or the steps; RightTile has the columns as lines, or the steps.
  template <class LeftTile, class RightTile, class Left, class Right>
  __device__ void add(char* memory, Left& left, Right& right, int steps) {
    constexpr bool left_is_steps = !std::is_same_v<Left, GroupedLines<LeftTile, Shape::threads>>;
    constexpr bool right_is_steps = !std::is_same_v<Right, GroupedLines<RightTile, Shape::threads>>;
    constexpr int stages = Shape::stages;
    const uint32_t lefts = shared_address(memory), rights = lefts + stages * LeftTile::bytes;
    int warp = threadIdx.x / 32, down = warp / Shape::warps_across, across = warp % Shape::warps_across;
    const uint32_t of_left = left_is_steps ? LeftTile::as_right() ^ LeftTile::step(down * m)
                                           : LeftTile::as_left() + down * m * mma_rows * LeftTile::pitch;
    const uint32_t of_right = right_is_steps ? RightTile::as_left() ^ RightTile::step(across * parts)
                                             : RightTile::as_right() + across * n * RightTile::pitch;
    uint32_t a[2][m][4], b[2][parts][2][2];
    auto load = [&](int to, int stage, int k) {
      uint32_t at_left = lefts + stage * LeftTile::bytes + of_left;
      uint32_t at_right = rights + stage * RightTile::bytes + of_right;
#pragma unroll
      for (int i = 0; i < m; ++i) {
        if constexpr (left_is_steps)
          LeftTile::left_of_rows(a[to][i], at_left, 16 * k, i);
        else
          LeftTile::left(a[to][i], at_left, mma_rows * i, k);
      }
#pragma unroll
      for (int j = 0; j < parts; ++j) {
        if constexpr (right_is_steps)
          RightTile::right_of_rows(b[to][j], at_right, 16 * k, j);
        else
          RightTile::right(b[to][j], at_right, 16 * j, k);
      }
    };

#pragma unroll
    for (int stage = 0; stage < stages - 1; ++stage) {
      if (stage < steps) {
        left.fetch(lefts + stage * LeftTile::bytes);
        right.fetch(rights + stage * RightTile::bytes);
      }
      __pipeline_commit();
    }
    __pipeline_wait_prior(stages - 2);
    __syncthreads();
    load(0, 0, 0);
    int now = 0, free = stages - 1;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      int next = now + 1 == stages ? 0 : now + 1;
#pragma unroll
      for (int k = 0; k < inner; ++k) {
        if (k + 1 == inner) {
          __pipeline_wait_prior(stages - 2);
          __syncthreads();
          load((k + 1) % 2, next, 0);
        } else {
          load((k + 1) % 2, now, k + 1);
        }
        if (k == 0) {
          if (step + stages - 1 < steps) {
            left.fetch(lefts + free * LeftTile::bytes);
            right.fetch(rights + free * RightTile::bytes);
          }
          __pipeline_commit();
        }
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int j = 0; j < parts; ++j) {
            multiply_add<T>(part[i][2 * j], a[k % 2][i], b[k % 2][j][0]);
            multiply_add<T>(part[i][2 * j + 1], a[k % 2][i], b[k % 2][j][1]);
          }
      }
      free = now, now = next;
    }
    __pipeline_wait_prior(0);
    __syncthreads();
  }

  // Rounds and writes the rows, in whole chunks, `to(row)` being where a row begins.
  template <class To>
  __device__ void write(char* memory, int rows, int columns, const To& to) const {
    using Tile = MmaTile<T, Shape::columns, Shape::rows>;
    Tile tile{reinterpret_cast<T*>(memory)};
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
    int first = warp / Shape::warps_across * m * mma_rows, chunk = warp % Shape::warps_across * (n / Tile::chunk);
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < n / 8; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<uint32_t*>(tile.address(first + 16 * i + 8 * half + r, chunk + j) + 2 * c) =
              rounded_pair<T>(part[i][j][2 * half], part[i][j][2 * half + 1]);
    __syncwarp();
    constexpr int chunks = n / Tile::chunk;
#pragma unroll 4
    for (int all = lane; all < m * mma_rows * chunks; all += 32) {
      int row = first + all / chunks, number = chunk + all % chunks;
      if (row < rows && number * Tile::chunk < columns)
        *reinterpret_cast<uint4*>(to(row) + number * Tile::chunk) =
            *reinterpret_cast<const uint4*>(tile.address(row, number));
    }
  }
};

template <class T, class Shape, bool transposed>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    grouped_mma_products(const __grid_constant__ GroupedProducts<T> all, int tiles, int across) {
  extern __shared__ __align__(1024) char memory[];
  const GroupedRowTile<T, Shape> tile(all, tiles, across);
  if (tile.rows <= 0) return;
  const GroupedProducts<T>& work = tile.work;
  const int inner = int(work.inner);

  using LeftTile = MmaTile<T, grouped_step, Shape::rows>;
  using Left = GroupedLines<LeftTile, Shape::threads>;
  GroupedSum<T, Shape> sum;
  if (tile.group < work.by.groups && inner > 0) {
    int chunks = inner / LeftTile::chunk, steps = (inner + grouped_step - 1) / grouped_step;
    Left left(work.a, inner,
              [&](int row) { return row < tile.rows ? uint32_t(tile.order[row]) * chunks : Left::none; });
    const T* b = work.b + tile.group * work.inner * work.columns;
    if constexpr (transposed) {
      using RightTile = MmaTile<T, grouped_step, Shape::columns>;
      using Right = GroupedLines<RightTile, Shape::threads>;
      Right right(b + tile.first_column * work.inner, inner,
                  [&](int line) { return line < tile.columns ? uint32_t(line) * chunks : Right::none; });
      sum.template add<LeftTile, RightTile>(memory, left, right, steps);
    } else {
      using RightTile = MmaTile<T, Shape::columns, grouped_step>;
      GroupedSteps<RightTile, Shape::threads> right(b + tile.first_column, work.columns, tile.columns, inner);
      sum.template add<LeftTile, RightTile>(memory, left, right, steps);
    }
  }
  sum.write(memory, tile.rows, tile.columns, [&](int row) { return tile.row(row); });
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    grouped_mma_sums(const __grid_constant__ GroupedSums<T> all, int tiles, int across) {
  extern __shared__ __align__(1024) char memory[];
  const GroupedSumTile<T, Shape> tile(all, tiles, across);
  const GroupedSums<T>& work = tile.work;

  using LeftTile = MmaTile<T, Shape::rows, grouped_step>;
  using RightTile = MmaTile<T, Shape::columns, grouped_step>;
  GroupedListedSteps<LeftTile, Shape::threads> left(work.a + tile.first_row, work.left, tile.rows, tile.order,
                                                    tile.count);
  GroupedListedSteps<RightTile, Shape::threads> right(work.b + tile.first_column, work.right, tile.columns, tile.order,
                                                      tile.count);
  GroupedSum<T, Shape> sum;
  if (tile.count > 0)
    sum.template add<LeftTile, RightTile>(memory, left, right, (tile.count + grouped_step - 1) / grouped_step);
  sum.write(memory, tile.rows, tile.columns, [&](int row) { return tile.row(row); });
}

}  // namespace internal
}  // namespace baracuda
