// The move pattern on a CUDA grid: a warp has a stretch of y, whose neighbours neighbouring lanes store, and each lane
// loads several cells before it stores one. Where neighbours in y are far apart in x, and neighbours in x are in y, a
// block moves a square through shared memory.
#pragma once

#include "move.h"

namespace baracuda {
namespace internal {

inline constexpr int move_block = 256, move_ahead = 4, move_tile = 32, move_tile_rows = 8;

// The map with its axes in two parts: those before `inner` say where a row is, the others where its cells are. Rows are
// so long that the last stretch of one, which may be short, matters little.
template <class Index>
struct Moves {
  static constexpr int stretch = 32 * move_ahead;
  static constexpr int64_t long_row = 4 * stretch;
  int axes, inner, terms;
  Index rows, columns;
  Divisor<Index> stretches, size[move_axes];
  Index stride[move_axes], step[move_terms][move_axes];
  Fold fold[move_terms];
  Index term_size[move_terms], offset[move_terms], term_stride[move_terms];
  Index base;

  explicit Moves(const MoveMap& map) : axes(map.axes), inner(map.axes), terms(map.terms), base(Index(map.base)) {
    int64_t count = 1;
    while (inner > 0 && count < long_row) count *= map.size[--inner];
    columns = Index(count), rows = Index(map.cells() / count), stretches = Divisor<Index>(ceil_div(count, stretch));
    for (int k = 0; k < axes; ++k) size[k] = Divisor<Index>(map.size[k]), stride[k] = Index(map.stride[k]);
    for (int t = 0; t < terms; ++t) {
      const MoveTerm& term = map.term[t];
      for (int k = 0; k < axes; ++k) step[t][k] = Index(map.step[t][k]);
      fold[t] = term.fold, offset[t] = Index(term.offset);
      term_size[t] = Index(term.size), term_stride[t] = Index(term.stride);
    }
  }
  int64_t warps() const { return int64_t(rows) * stretches.value; }

  // Where n cells come from.
  template <int n>
  struct Places {
    Index place[n], q[move_terms][n];
  };
  __device__ __forceinline__ Places<1> origin() const {
    Places<1> at{{base}, {}};
#pragma unroll
    for (int t = 0; t < move_terms; ++t)
      if (t < terms) at.q[t][0] = offset[t];
    return at;
  }
  // Adds what the axes from `first` to before `last` do, of which these are the indices of cells.
  template <int n>
  __device__ __forceinline__ void add(Places<n>& at, Index (&index)[n], int first, int last) const {
    for (int k = last - 1; k >= first; --k) {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        Index quotient = k == first ? 0 : size[k].quotient(index[i]), own = index[i] - quotient * size[k].value;
        index[i] = quotient;
        at.place[i] += own * stride[k];
#pragma unroll
        for (int t = 0; t < move_terms; ++t)
          if (t < terms) at.q[t][i] += own * step[t][k];
      }
    }
  }
  // The places of cells, -1 for the fill value.
  template <int n>
  __device__ __forceinline__ void fold_terms(Places<n>& at) const {
    bool is_filled[n] = {};
#pragma unroll
    for (int t = 0; t < move_terms; ++t)
      if (t < terms) {
#pragma unroll
        for (int i = 0; i < n; ++i) {
          Index q = folded(fold[t], at.q[t][i], term_size[t]);
          is_filled[i] |= q < 0;
          at.place[i] += q * term_stride[t];
        }
      }
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (is_filled[i]) at.place[i] = -1;
  }
};

template <class Index, class Cell>
__global__ void __launch_bounds__(move_block)
    move_stretches(const __grid_constant__ Moves<Index> map, int64_t warps, Cell fill, const Cell* x, Cell* y) {
  constexpr int ahead = move_ahead;
  int64_t warp = int64_t(blockIdx.x) * (move_block / 32) + threadIdx.x / 32;
  if (warp >= warps) return;
  Index row = map.stretches.quotient(Index(warp));
  Index first = (Index(warp) - row * map.stretches.value) * map.stretch + threadIdx.x % 32;
  auto of_row = map.origin();
  Index row_index[1] = {row};
  map.add(of_row, row_index, 0, map.inner);
  typename Moves<Index>::template Places<ahead> at;
  Index column[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    column[i] = first + 32 * i < map.columns ? first + 32 * i : first;
    at.place[i] = of_row.place[0];
#pragma unroll
    for (int t = 0; t < move_terms; ++t) at.q[t][i] = of_row.q[t][0];
  }
  if (first >= map.columns) return;
  map.add(at, column, map.inner, map.axes);
  map.fold_terms(at);
  Cell cells[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) cells[i] = at.place[i] < 0 ? fill : x[at.place[i]];
  Cell* to = y + int64_t(row) * map.columns + first;
#pragma unroll
  for (int i = 0; i < ahead; ++i)
    if (first + 32 * i < map.columns) to[32 * i] = cells[i];
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
  if (int near = near_axis(map); near >= 0) {
    Squares<Index> squares(map, near);
    dim3 threads(move_tile, move_tile_rows);
    if (squares.blocks < narrow_reach) {
      move_squares<Index><<<unsigned(squares.blocks), threads, 0, executor.stream>>>(squares, x, y);
      return launched();
    }
  }
  Moves<Index> moves(map);
  unsigned blocks = unsigned(ceil_div(moves.warps(), move_block / 32));
  move_stretches<Index><<<blocks, move_block, 0, executor.stream>>>(moves, moves.warps(), fill, x, y);
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
