// The index_map pattern on a CUDA grid: a warp has a range of y, whose neighbors neighboring lanes store, and each
// lane loads several elements before it stores one. Where neighbors in y are far apart in x, and neighbors in x are
// in y, a block moves a square through shared memory.
#pragma once

#include "index_map.h"

namespace baracuda {
namespace internal {

inline constexpr int move_block = 256, map_ahead = 4, map_tile = 32, map_tile_rows = 8;

// Some neighboring axes of a map. They end where the arrays do, so that loops over them, unrolled, read parameters
// where these are.
template <int terms, class Index>
struct MapAxes {
  int first;
  Divisor<Index> size[map_axes];
  Index stride[map_axes], step[terms + 1][map_axes];

  MapAxes(const IndexMap& map, int begin, int end) : first(map_axes - (end - begin)) {
    for (int k = begin, to = first; k < end; ++k, ++to) {
      size[to] = Divisor<Index>(map.size[k]), stride[to] = Index(map.stride[k]);
      for (int t = 0; t < terms; ++t) step[t][to] = t < map.terms ? Index(map.step[t][k]) : Index(0);
    }
  }
};

// Where n elements come from: their positions on the map's axes, and on those of its terms.
template <int terms, int n, class Index>
struct MapPositions {
  Index position[n], q[terms + 1][n];

  // Adds what some axes do, of which these are the indices of the elements.
  __device__ __forceinline__ void add(const MapAxes<terms, Index>& axes, Index (&index)[n]) {
#pragma unroll
    for (int k = map_axes - 1; k >= 0; --k) {
      if (k < axes.first) break;
#pragma unroll
      for (int i = 0; i < n; ++i) {
        Index quotient = axes.size[k].quotient(index[i]), own = index[i] - quotient * axes.size[k].value;
        index[i] = quotient;
        position[i] += own * axes.stride[k];
#pragma unroll
        for (int t = 0; t < terms; ++t) q[t][i] += own * axes.step[t][k];
      }
    }
  }
};

// The map with its axes in two parts: those that say where a row is, and those of its elements. Rows are so long that
// the last range of one, which may be short, matters little. It may have fewer than `most` terms; others do nothing.
template <int most, class Index>
struct Moves {
  static constexpr int range = 32 * map_ahead;
  static constexpr int64_t long_row = 4 * range;
  MapAxes<most, Index> of_row, of_element;
  Index rows, columns;
  Divisor<Index> ranges;
  Fold fold[most + 1];
  Index term_size[most + 1], offset[most + 1], term_stride[most + 1];
  Index base;

  explicit Moves(const IndexMap& map) : Moves(map, first_of_element(map)) {}
  Moves(const IndexMap& map, int inner)
      : of_row(map, 0, inner), of_element(map, inner, map.axes), base(Index(map.base)) {
    int64_t count = 1;
    for (int k = inner; k < map.axes; ++k) count *= map.size[k];
    columns = Index(count), rows = Index(map.elements() / count), ranges = Divisor<Index>(ceil_div(count, range));
    for (int t = 0; t < most; ++t) {
      const IndexTerm& term = t < map.terms ? map.term[t] : IndexTerm{Fold::constant, 1, 0, 0};
      fold[t] = term.fold, offset[t] = Index(term.offset);
      term_size[t] = Index(term.size), term_stride[t] = Index(term.stride);
    }
  }
  static int first_of_element(const IndexMap& map) {
    int first = map.axes;
    for (int64_t count = 1; first > 0 && count < long_row;) count *= map.size[--first];
    return first;
  }
  int64_t warps() const { return int64_t(rows) * ranges.value; }

  // The positions of elements, -1 for the fill value.
  template <int n>
  __device__ __forceinline__ void fold_terms(MapPositions<most, n, Index>& at) const {
    bool is_filled[n] = {};
#pragma unroll
    for (int t = 0; t < most; ++t)
#pragma unroll
      for (int i = 0; i < n; ++i) {
        Index q = folded(fold[t], at.q[t][i], term_size[t]);
        is_filled[i] |= q < 0;
        at.position[i] += q * term_stride[t];
      }
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (is_filled[i]) at.position[i] = -1;
  }
};

template <int most, class Index, class Element>
__global__ void __launch_bounds__(move_block) map_ranges(const __grid_constant__ Moves<most, Index> map, int64_t warps,
                                                         Element fill, const Element* x, Element* y) {
  constexpr int ahead = map_ahead;
  int64_t warp = int64_t(blockIdx.x) * (move_block / 32) + threadIdx.x / 32;
  if (warp >= warps) return;
  Index row = map.ranges.quotient(Index(warp));
  Index first = (Index(warp) - row * map.ranges.value) * map.range + threadIdx.x % 32;
  if (first >= map.columns) return;
  MapPositions<most, 1, Index> of_row{{map.base}, {}};
#pragma unroll
  for (int t = 0; t < most; ++t) of_row.q[t][0] = map.offset[t];
  Index row_index[1] = {row};
  of_row.add(map.of_row, row_index);
  MapPositions<most, ahead, Index> at;
  Index column[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    column[i] = first + 32 * i < map.columns ? first + 32 * i : first;
    at.position[i] = of_row.position[0];
#pragma unroll
    for (int t = 0; t < most; ++t) at.q[t][i] = of_row.q[t][0];
  }
  at.add(map.of_element, column);
  map.fold_terms(at);
  Element elements[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) elements[i] = most > 0 && at.position[i] < 0 ? fill : x[at.position[i]];
  Element* to = y + int64_t(row) * map.columns + first;
#pragma unroll
  for (int i = 0; i < ahead; ++i)
    if (first + 32 * i < map.columns) to[32 * i] = elements[i];
}

template <int most, class Index, class Element>
Status map_by_ranges(const Executor& executor, const IndexMap& map, Element fill, const Element* x, Element* y) {
  Moves<most, Index> moves(map);
  unsigned blocks = unsigned(ceil_div(moves.warps(), move_block / 32));
  map_ranges<most, Index><<<blocks, move_block, 0, executor.stream>>>(moves, moves.warps(), fill, x, y);
  return launched();
}

// A permutation of axes, of which one, `near`, has neighbors in x, and the last has neighbors in y.
template <class Index>
struct Squares {
  int others;
  Divisor<Index> size[map_axes - 2], row_tiles, column_tiles;
  Index x_stride[map_axes - 2], y_stride[map_axes - 2];
  Index base, near_size, near_stride, near_y_stride, last_size, last_stride;
  int64_t blocks;

  Squares(const IndexMap& map, int near)
      : others(0),
        row_tiles(ceil_div(map.size[near], map_tile)),
        column_tiles(ceil_div(map.size[map.last()], map_tile)),
        blocks(1) {
    int64_t y_elements = 1;
    for (int k = map.last(); k >= 0; --k) {
      if (k == map.last()) {
        last_size = Index(map.size[k]), last_stride = Index(map.stride[k]);
      } else if (k == near) {
        near_size = Index(map.size[k]), near_stride = Index(map.stride[k]), near_y_stride = Index(y_elements);
      } else {
        size[others] = Divisor<Index>(map.size[k]);
        x_stride[others] = Index(map.stride[k]), y_stride[others++] = Index(y_elements);
        blocks *= map.size[k];
      }
      y_elements *= map.size[k];
    }
    base = Index(map.base);
    blocks *= ceil_div(map.size[near], map_tile) * ceil_div(map.size[map.last()], map_tile);
  }
};

template <class Index, class Element>
__global__ void __launch_bounds__(map_tile* map_tile_rows)
    map_squares(const __grid_constant__ Squares<Index> map, const Element* x, Element* y) {
  __shared__ Element tile[map_tile][map_tile + 1];
  Index index = Index(blockIdx.x), rest = map.row_tiles.quotient(index);
  Index near = (index - rest * map.row_tiles.value) * map_tile;
  index = rest, rest = map.column_tiles.quotient(index);
  Index last = (index - rest * map.column_tiles.value) * map_tile;
  index = rest;
  Index from = map.base, to = 0;
#pragma unroll
  for (int k = 0; k < map_axes - 2; ++k) {
    if (k >= map.others) continue;
    rest = map.size[k].quotient(index);
    Index i = index - rest * map.size[k].value;
    index = rest;
    from += i * map.x_stride[k], to += i * map.y_stride[k];
  }
  Index column = threadIdx.x;
#pragma unroll
  for (int i = 0; i < map_tile; i += map_tile_rows) {
    Index row = i + threadIdx.y;
    if (near + column < map.near_size && last + row < map.last_size)
      tile[row][column] = x[from + (near + column) * map.near_stride + (last + row) * map.last_stride];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < map_tile; i += map_tile_rows) {
    Index row = i + threadIdx.y;
    if (near + row < map.near_size && last + column < map.last_size)
      y[to + (near + row) * map.near_y_stride + last + column] = tile[column][row];
  }
}

// The axis along which a permutation's elements are neighbors in x, where squares pay; else -1.
inline int near_axis(const IndexMap& map) {
  constexpr int64_t least = map_tile / 2;
  int last = map.last();
  int64_t apart = map.stride[last] < 0 ? -map.stride[last] : map.stride[last];
  if (map.terms > 0 || apart < 2 || map.size[last] < least) return -1;
  for (int k = 0; k < last; ++k)
    if ((map.stride[k] == 1 || map.stride[k] == -1) && map.size[k] >= least) return k;
  return -1;
}

template <class Index, class Element>
Status map_elements_by(const Executor& executor, const IndexMap& map, Element fill, const Element* x, Element* y) {
  if (int near = near_axis(map); near >= 0) {
    Squares<Index> squares(map, near);
    dim3 threads(map_tile, map_tile_rows);
    if (squares.blocks < narrow_reach) {
      map_squares<Index><<<unsigned(squares.blocks), threads, 0, executor.stream>>>(squares, x, y);
      return launched();
    }
  }
  if (map.terms == 0) return map_by_ranges<0, Index>(executor, map, fill, x, y);
  // Few terms, such as those of images, leave registers free.
  if (map.terms <= 2) return map_by_ranges<2, Index>(executor, map, fill, x, y);
  return map_by_ranges<map_terms, Index>(executor, map, fill, x, y);
}

}  // namespace internal

// `map` has one axis at least, and no empty one.
template <class Element>
Status map_elements(const Executor& executor, const IndexMap& map, Element fill, const Element* x, Element* y) {
  auto [first, last] = map.reach();
  bool is_near = map.elements() < narrow_reach && last < narrow_reach && map.farthest() < narrow_reach;
  for (int k = 0; k < map.axes; ++k) is_near = is_near && map.stride[k] > -narrow_reach;
  return is_near ? internal::map_elements_by<int32_t>(executor, map, fill, x, y)
                 : internal::map_elements_by<int64_t>(executor, map, fill, x, y);
}

}  // namespace baracuda
