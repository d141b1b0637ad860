// The move pattern on a CUDA grid: a thread has neighbouring cells of y, 16 bytes of them. Where neighbours in y are
// far apart in x, and neighbours in x are in y, a block moves a square through shared memory.
#pragma once

#include "move.h"

namespace baracuda {
namespace internal {

inline constexpr int move_block = 256, move_tile = 32, move_tile_rows = 8;

// The map, without its last axis, which lanes step along.
template <class Index>
struct Moves {
  int outer, terms;
  Divisor<Index> columns, size[move_axes - 1];
  Index stride[move_axes - 1], step[move_terms][move_axes - 1];
  Index column_stride, column_step[move_terms];
  Fold fold[move_terms];
  Index term_size[move_terms], offset[move_terms], term_stride[move_terms];
  Index base;

  explicit Moves(const MoveMap& map) : outer(map.last()), terms(map.terms), columns(map.size[map.last()]) {
    for (int k = 0; k < outer; ++k) size[k] = Divisor<Index>(map.size[k]), stride[k] = Index(map.stride[k]);
    column_stride = Index(map.stride[outer]), base = Index(map.base);
    for (int t = 0; t < terms; ++t) {
      const MoveTerm& term = map.term[t];
      for (int k = 0; k < outer; ++k) step[t][k] = Index(map.step[t][k]);
      column_step[t] = Index(map.step[t][outer]);
      fold[t] = term.fold, offset[t] = Index(term.offset);
      term_size[t] = Index(term.size), term_stride[t] = Index(term.stride);
    }
  }

  // What is the same for all cells of a row.
  struct Row {
    Index place, q[move_terms];
    bool is_filled;
  };
  __device__ __forceinline__ Row row(Index index) const {
    Row row{base, {}, false};
#pragma unroll
    for (int t = 0; t < move_terms; ++t)
      if (t < terms) row.q[t] = offset[t];
#pragma unroll
    for (int k = move_axes - 2; k >= 0; --k) {
      if (k >= outer) continue;
      Index quotient = k == 0 ? 0 : size[k].quotient(index), i = index - quotient * size[k].value;
      index = quotient;
      row.place += i * stride[k];
#pragma unroll
      for (int t = 0; t < move_terms; ++t)
        if (t < terms) row.q[t] += i * step[t][k];
    }
#pragma unroll
    for (int t = 0; t < move_terms; ++t)
      if (t < terms && column_step[t] == 0) add(row, row.q[t], t);
    return row;
  }
  // The place of a cell, -1 for the fill value.
  __device__ __forceinline__ Index place(const Row& of, Index column) const {
    Row row = of;
    row.place += column * column_stride;
#pragma unroll
    for (int t = 0; t < move_terms; ++t)
      if (t < terms && column_step[t] != 0) add(row, row.q[t] + column * column_step[t], t);
    return row.is_filled ? -1 : row.place;
  }

 private:
  __device__ __forceinline__ void add(Row& row, Index q, int t) const {
    Index at = folded(fold[t], q, term_size[t]);
    row.is_filled |= at < 0;
    row.place += at * term_stride[t];
  }
};

template <class Index, class Cell>
__global__ void __launch_bounds__(move_block)
    move_lanes(const __grid_constant__ Moves<Index> map, int64_t cells, Cell fill, const Cell* x, Cell* y) {
  constexpr int V = 16 / sizeof(Cell), together = sizeof(Cell) < 4 ? 4 / sizeof(Cell) : 1;
  // Single bytes are moved one behind the other: else the code is too long.
  constexpr int unrolled = sizeof(Cell) == 1 ? 1 : together;
  using Word = std::conditional_t<(sizeof(Cell) < 4), uint32_t, Cell>;
  int64_t first = (int64_t(blockIdx.x) * move_block + threadIdx.x) * V;
  if (first >= cells) return;
  Index index = map.columns.quotient(Index(first)), column = Index(first) - index * map.columns.value;
  auto row = map.row(index);
  Vector<Word, V / together> words;
#pragma unroll
  for (int k = 0; k < V / together; ++k) {
    Word word{};
#pragma unroll unrolled
    for (int j = 0; j < together; ++j) {
      int lane = k * together + j;
      if (first + lane >= cells) continue;
      if (lane > 0 && ++column == map.columns.value) column = 0, row = map.row(++index);
      Index place = map.place(row, column);
      Cell value = place < 0 ? fill : x[place];
      if constexpr (together > 1)
        word |= Word(value) << (8 * int(sizeof(Cell)) * j);
      else
        word = value;
    }
    words.lane[k] = word;
  }
  if (first + V <= cells) return store<V / together>(reinterpret_cast<Word*>(y + first), words);
#pragma unroll
  for (int lane = 0; lane < V; ++lane) {
    if (first + lane >= cells) continue;
    if constexpr (together > 1)
      y[first + lane] = Cell(words.lane[lane / together] >> (8 * int(sizeof(Cell)) * (lane % together)));
    else
      y[first + lane] = words.lane[lane];
  }
}

// A permutation of axes, of which one, `near`, has neighbours in x, and the last has neighbours in y.
template <class Index>
struct Squares {
  int others;
  Divisor<Index> size[move_axes - 2], row_tiles, column_tiles;
  Index x_stride[move_axes - 2], y_stride[move_axes - 2];
  Index base, near_size, near_stride, near_y_stride, last_size, last_stride;
  int64_t blocks;

  Squares(const MoveMap& map, int near)
      : others(0),
        row_tiles(ceil_div(map.size[near], move_tile)),
        column_tiles(ceil_div(map.size[map.last()], move_tile)),
        blocks(1) {
    int64_t y_cells = 1;
    for (int k = map.last(); k >= 0; --k) {
      if (k == map.last()) {
        last_size = Index(map.size[k]), last_stride = Index(map.stride[k]);
      } else if (k == near) {
        near_size = Index(map.size[k]), near_stride = Index(map.stride[k]), near_y_stride = Index(y_cells);
      } else {
        size[others] = Divisor<Index>(map.size[k]);
        x_stride[others] = Index(map.stride[k]), y_stride[others++] = Index(y_cells);
        blocks *= map.size[k];
      }
      y_cells *= map.size[k];
    }
    base = Index(map.base);
    blocks *= ceil_div(map.size[near], move_tile) * ceil_div(map.size[map.last()], move_tile);
  }
};

template <class Index, class Cell>
__global__ void __launch_bounds__(move_tile* move_tile_rows)
    move_squares(const __grid_constant__ Squares<Index> map, const Cell* x, Cell* y) {
  __shared__ Cell tile[move_tile][move_tile + 1];
  Index index = Index(blockIdx.x), rest = map.row_tiles.quotient(index);
  Index near = (index - rest * map.row_tiles.value) * move_tile;
  index = rest, rest = map.column_tiles.quotient(index);
  Index last = (index - rest * map.column_tiles.value) * move_tile;
  index = rest;
  Index from = map.base, to = 0;
#pragma unroll
  for (int k = 0; k < move_axes - 2; ++k) {
    if (k >= map.others) continue;
    rest = map.size[k].quotient(index);
    Index i = index - rest * map.size[k].value;
    index = rest;
    from += i * map.x_stride[k], to += i * map.y_stride[k];
  }
  Index column = threadIdx.x;
#pragma unroll
  for (int i = 0; i < move_tile; i += move_tile_rows) {
    Index row = i + threadIdx.y;
    if (near + column < map.near_size && last + row < map.last_size)
      tile[row][column] = x[from + (near + column) * map.near_stride + (last + row) * map.last_stride];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < move_tile; i += move_tile_rows) {
    Index row = i + threadIdx.y;
    if (near + row < map.near_size && last + column < map.last_size)
      y[to + (near + row) * map.near_y_stride + last + column] = tile[column][row];
  }
}

// The axis along which a permutation's cells are neighbours in x, where squares pay; else -1.
inline int near_axis(const MoveMap& map) {
  constexpr int64_t least = move_tile / 2;
  int last = map.last();
  int64_t apart = map.stride[last] < 0 ? -map.stride[last] : map.stride[last];
  if (map.terms > 0 || apart < 2 || map.size[last] < least) return -1;
  for (int k = 0; k < last; ++k)
    if ((map.stride[k] == 1 || map.stride[k] == -1) && map.size[k] >= least) return k;
  return -1;
}

template <class Index, class Cell>
Status move_cells_by(const Executor& executor, const MoveMap& map, Cell fill, const Cell* x, Cell* y) {
  int64_t cells = map.cells();
  if (int near = near_axis(map); near >= 0) {
    Squares<Index> squares(map, near);
    dim3 threads(move_tile, move_tile_rows);
    if (squares.blocks < narrow_reach) {
      move_squares<Index><<<unsigned(squares.blocks), threads, 0, executor.stream>>>(squares, x, y);
      return launched();
    }
  }
  int64_t lanes = move_block * 16 / int64_t(sizeof(Cell));
  move_lanes<Index>
      <<<unsigned(ceil_div(cells, lanes)), move_block, 0, executor.stream>>>(Moves<Index>(map), cells, fill, x, y);
  return launched();
}

}  // namespace internal

// `map` has one axis at least, and no empty one.
template <class Cell>
Status move_cells(const Executor& executor, const MoveMap& map, Cell fill, const Cell* x, Cell* y) {
  auto [first, last] = map.reach();
  bool is_near = map.cells() < narrow_reach && last < narrow_reach && map.farthest() < narrow_reach;
  for (int k = 0; k < map.axes; ++k) is_near = is_near && map.stride[k] > -narrow_reach;
  return is_near ? internal::move_cells_by<int32_t>(executor, map, fill, x, y)
                 : internal::move_cells_by<int64_t>(executor, map, fill, x, y);
}

}  // namespace baracuda
