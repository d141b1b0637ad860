// The reduce pattern on a CUDA grid.
//
// Threads have V neighbours at a time, 16 bytes where they can, and load several times before they use any. The lanes
// of a row are threads beside each other, up to a block; of rows that a warp loads at once it has several. In columns a
// thread has V of them, and groups of threads take turns at the cells of a line. Where lines are too few to fill the
// device, or so long that sums would lose digits, they are cut into parts, whose states a second kernel puts together.
#pragma once

#include "../kernels/number.h"
#include "reduce.h"
#include "row_team_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int reduce_block = 256, reduce_ahead = 4;

// Neighbours of 16 bytes, but no more than 8.
template <class T>
inline constexpr int reduce_width = sizeof(T) == 1 ? 8 : 16 / int(sizeof(T));

// Which threads have which cells, by the shape alone. The caller's size of the workspace follows from the same numbers.
struct ReduceGrid {
  int lanes, groups, lines;  // threads of a block: of neighbours, of other cells of the line, of other lines
  bool rows;
  int64_t tiles;  // of lanes in the columns of a line
  int64_t parts = 1, length;

  ReduceGrid(const ReduceShape& shape, int V, int64_t most_states) : rows(shape.columns == 1) {
    constexpr int64_t wanted_blocks = 132 * 8, longest = 256, ahead = reduce_ahead;
    int64_t count = shape.count;
    lanes = groups = 1;
    if (rows) {
      while (lanes < reduce_block && int64_t(lanes) * V * (lanes < 32 ? 2 : ahead) < count) lanes *= 2;
    } else {
      int64_t wide = ceil_div(shape.columns, V);
      lanes = int(wide < 32 ? wide : 32);
      while (2 * groups * lanes <= reduce_block && 2 * groups * ahead <= count) groups *= 2;
      while (2 * lanes * groups <= reduce_block && lanes < wide) lanes *= 2;
      if (lanes > wide) lanes = int(wide);
    }
    lines = reduce_block / (lanes * groups);
    if (!rows && lines > 64) lines = 64;  // CUDA's limit to a block's third dimension
    tiles = rows ? 1 : ceil_div(shape.columns, int64_t(lanes) * V);
    // A thread of a part pushes several times, and not so often that its sum loses digits.
    int64_t cells = (rows ? lanes * V : groups) * ahead, blocks = ceil_div(shape.lines, lines) * tiles;
    if (blocks < wanted_blocks) parts = ceil_div(wanted_blocks, blocks);
    if (parts > count / (8 * cells)) parts = count / (8 * cells);
    if (parts < ceil_div(count, longest * cells)) parts = ceil_div(count, longest * cells);
    int64_t most = shape.results() > 0 ? most_states / shape.results() : 1;
    if (parts > most) parts = most;
    if (parts > 65535) parts = 65535;
    if (parts < 1) parts = 1;
    length = ceil_div(ceil_div(count, parts), cells) * cells;
    if (length < 1) length = 1;
    parts = count > length ? ceil_div(count, length) : 1;
  }
  dim3 blocks(const ReduceShape& shape) const {
    return dim3(unsigned(ceil_div(shape.lines, lines) * tiles), unsigned(parts));
  }
  dim3 threads() const {
    return rows ? dim3(unsigned(lanes), unsigned(lines)) : dim3(unsigned(lanes), unsigned(groups), unsigned(lines));
  }
};

// What a thread has: V lanes from `column` on, of the cells begin, begin + step, ... of a line.
struct ReducePlace {
  int64_t line, column, begin, end, step;
  bool exists;

  __device__ ReducePlace(const ReduceShape& shape, const ReduceGrid& grid, int V) {
    int64_t block = blockIdx.x, tile = 0;
    if (grid.tiles > 1) block = blockIdx.x / unsigned(grid.tiles), tile = blockIdx.x - block * grid.tiles;
    line = block * grid.lines + (grid.rows ? threadIdx.y : threadIdx.z);
    column = grid.rows ? 0 : (tile * grid.lanes + threadIdx.x) * V;
    exists = line < shape.lines && column < shape.columns;
    begin = blockIdx.y * grid.length;
    end = min(begin + grid.length, shape.count);
    begin += grid.rows ? threadIdx.x * V : threadIdx.y;
    step = grid.rows ? grid.lanes * V : grid.groups;
  }
  __device__ int64_t first(const ReduceShape& shape) const { return shape.first + shape.kept.offset(line) + column; }
};

// Offsets of the cells begin, begin + step, ... of a line. Of two dimensions, too, they are sums.
struct CellWalk {
  const CellDimensions& cells;
  int64_t at, index, step;
  int64_t jump, inner, inner_jump, inner_size, wrap;

  __device__ CellWalk(const CellDimensions& cells, int64_t begin, int64_t step)
      : cells(cells), at(cells.offset(begin)), index(begin), step(step), jump(step * cells.inner_step()) {
    if (cells.rank != 2) return;
    const Extent& size = cells.extent[1];
    int64_t over = size.quotient(step);
    inner_size = size.size, inner = begin - size.quotient(begin) * inner_size, inner_jump = step - over * inner_size;
    jump = over * cells.step[0] + inner_jump * cells.step[1], wrap = cells.step[0] - inner_size * cells.step[1];
  }
  // The offset, which then is that of the next.
  __device__ __forceinline__ int64_t take() {
    int64_t here = at;
    index += step;
    if (cells.rank > 2) {
      at = cells.offset(index);
    } else {
      at += jump;
      if (cells.rank == 2) {
        inner += inner_jump;
        if (inner >= inner_size) inner -= inner_size, at += wrap;
      }
    }
    return here;
  }
};

// Loads of V neighbours, as n cells of each of V lanes, or as n V cells of a row.
template <class T, int V, int n, bool rows>
struct LoadedCells {
  Vector<T, V> load[n];
  __device__ __forceinline__ const T& operator()(int i, int k) const {
    return rows ? load[i / V].lane[i % V] : load[i].lane[k];
  }
};

// The state of the thread's lanes, of which a row has one.
template <int V, bool rows, class Reducer>
__device__ auto reduce_cells(const Reducer& reducer, const ReduceShape& shape, const ReducePlace& place,
                             const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  constexpr int ahead = reduce_ahead, lanes = rows ? 1 : V, cells = rows ? V : 1;
  typename Reducer::template State<lanes> s;
  reducer.none(s);
  if (!place.exists) return s;
  x += place.first(shape);
  CellWalk walk(shape.reduced, place.begin, place.step);
  for (int64_t e = place.begin; e < place.end; e += ahead * place.step) {
    LoadedCells<T, V, ahead, rows> loaded;
    if (e + (ahead - 1) * place.step < place.end) {
#pragma unroll
      for (int i = 0; i < ahead; ++i) loaded.load[i] = load<V>(x + walk.take());
      reducer.template push<lanes, ahead * cells>(s, loaded);
    } else {
#pragma unroll
      for (int i = 0; i < ahead - 1; ++i)
        if (e + i * place.step < place.end) loaded.load[i] = load<V>(x + walk.take());
#pragma unroll
      for (int i = 0; i < ahead - 1; ++i)
        if (e + i * place.step < place.end)
          reducer.template push<lanes, cells>(s, LoadedCells<T, V, 1, rows>{{loaded.load[i]}});
    }
  }
  return s;
}

// Where there are several parts, `states` are [lines, columns, parts].
template <int V, class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_rows(Reducer reducer, ReduceShape shape, ReduceGrid grid, const typename Reducer::Element* x,
                typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<1>;
  __shared__ State shared[reduce_block / 32];
  ReducePlace place(shape, grid, V);
  State s = of_row(reducer, reduce_cells<V, true>(reducer, shape, place, x), shared);
  if (threadIdx.x > 0 || !place.exists) return;
  if (states)
    states[place.line * grid.parts + blockIdx.y] = s;
  else
    reducer.template finish<1>(s, place.line);
}

// Rows of one load of each of up to 32 lanes: a thread has several of them.
struct ShortRows {
  int64_t first, apart, lines;

  __device__ explicit ShortRows(const ReduceShape& shape)
      : first(blockIdx.x * int64_t(blockDim.y) * reduce_ahead + threadIdx.y), apart(blockDim.y), lines(shape.lines) {}
  __device__ int64_t line(int i) const { return first + i * apart; }
  __device__ bool exists(int i) const { return line(i) < lines; }

  static bool fit(const ReduceShape& shape, int V) {
    return shape.columns == 1 && shape.reduced.rank <= 1 && shape.reduced.inner_step() == 1 && shape.count <= 32 * V;
  }
  static dim3 threads(const ReduceShape& shape, int V) {
    int lanes = 1;
    while (lanes * V < shape.count) lanes *= 2;
    return dim3(unsigned(lanes), unsigned(reduce_block / lanes));
  }
  static dim3 blocks(const ReduceShape& shape, int V) {
    return dim3(unsigned(ceil_div(shape.lines, int64_t(threads(shape, V).y) * reduce_ahead)));
  }
};

template <int V, class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_short_rows(Reducer reducer, ReduceShape shape, const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  constexpr int ahead = reduce_ahead;
  ShortRows rows(shape);
  int column = threadIdx.x * V;
  bool has_cells = column < shape.count;
  LoadedCells<T, V, 1, true> loaded[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i)
    if (has_cells && rows.exists(i))
      loaded[i].load[0] = load<V>(x + shape.first + shape.kept.offset(rows.line(i)) + column);
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    typename Reducer::template State<1> s;
    reducer.none(s);
    if (has_cells && rows.exists(i)) reducer.template push<1, V>(s, loaded[i]);
    s = of_lanes(reducer, s, blockDim.x);
    if (threadIdx.x == 0 && rows.exists(i)) reducer.template finish<1>(s, rows.line(i));
  }
}

template <int V, class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_columns(Reducer reducer, ReduceShape shape, ReduceGrid grid, const typename Reducer::Element* x,
                   typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<V>;
  __shared__ State shared[reduce_block];
  ReducePlace place(shape, grid, V);
  State s = reduce_cells<V, false>(reducer, shape, place, x);
  int thread = (threadIdx.z * grid.groups + threadIdx.y) * grid.lanes + threadIdx.x;
  for (int half = grid.groups / 2; half > 0; half /= 2) {
    __syncthreads();
    shared[thread] = s;
    __syncthreads();
    if (threadIdx.y < half) reducer.merge(s, shared[thread + half * grid.lanes]);
  }
  if (threadIdx.y > 0 || !place.exists) return;
  int64_t cell = place.line * shape.columns + place.column;
  if (!states) return reducer.template finish<V>(s, cell);
#pragma unroll
  for (int k = 0; k < V; ++k) states[(cell + k) * grid.parts + blockIdx.y] = s.lane(k);
}

// A warp for the parts of each cell of y.
template <class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_parts(Reducer reducer, int64_t cells, int64_t parts, const typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<1>;
  int64_t cell = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  State s;
  reducer.none(s);
  if (cell < cells)
    for (int64_t part = threadIdx.x; part < parts; part += 32) reducer.merge(s, states[cell * parts + part]);
  s = of_row(reducer, s, static_cast<State*>(nullptr));
  if (threadIdx.x == 0 && cell < cells) reducer.template finish<1>(s, cell);
}

template <int V, class Reducer>
Status reduce_lines_by(Executor executor, const Reducer& reducer, const ReduceShape& shape,
                       const typename Reducer::Element* x) {
  using State = typename Reducer::template State<1>;
  if (ShortRows::fit(shape, V)) {
    reduce_short_rows<V>
        <<<ShortRows::blocks(shape, V), ShortRows::threads(shape, V), 0, executor.stream>>>(reducer, shape, x);
    return launched();
  }
  ReduceGrid grid(shape, V, int64_t(executor.workspace_bytes / 256 * 256 / sizeof(State)));
  State* states = grid.parts > 1 ? executor.scratch<State>(shape.results() * grid.parts) : nullptr;
  if (grid.parts > 1 && !states) return small_workspace;
  if (grid.rows)
    reduce_rows<V><<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(reducer, shape, grid, x, states);
  else
    reduce_columns<V><<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(reducer, shape, grid, x, states);
  if (states) {
    dim3 threads(32, reduce_block / 32), blocks(unsigned(ceil_div(shape.results(), threads.y)));
    reduce_parts<<<blocks, threads, 0, executor.stream>>>(reducer, shape.results(), grid.parts, states);
  }
  return launched();
}

// Whether all loads of V neighbours begin at multiples of V.
inline bool reduce_aligned(const ReduceShape& shape, int V) {
  if (shape.columns == 1) return shape.has_rows() && shape.reduced.inner() % V == 0;
  return shape.first == 0 && shape.columns % V == 0;
}

template <int V, class Spreader>
__global__ void __launch_bounds__(reduce_block)
    spread_cells(Spreader spreader, ReduceShape shape, ReduceGrid grid, const typename Spreader::Element* x,
                 typename Spreader::Element* dx) {
  using T = typename Spreader::Element;
  constexpr int ahead = reduce_ahead;
  ReducePlace place(shape, grid, V);
  if (!place.exists) return;
  typename Spreader::Part parts[V];
  int64_t cell = place.line * shape.columns + place.column;
#pragma unroll
  for (int k = 0; k < V; ++k)
    if (k == 0 || !grid.rows)
      parts[k] = spreader.part(cell + k);
    else
      parts[k] = parts[0];
  int64_t first = place.first(shape);
  CellWalk walk(shape.reduced, place.begin, place.step);
  for (int64_t e = place.begin; e < place.end; e += ahead * place.step) {
    Vector<T, V> values[ahead];
    int64_t offset[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (e + i * place.step < place.end) {
        offset[i] = first + walk.take();
        if constexpr (Spreader::reads) values[i] = load<V>(x + offset[i]);
      }
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (e + i * place.step < place.end) {
#pragma unroll
        for (int k = 0; k < V; ++k) values[i].lane[k] = spreader.at(parts[k], values[i].lane[k]);
        store<V>(dx + offset[i], values[i]);
      }
  }
}

template <int V, class Spreader>
__global__ void __launch_bounds__(reduce_block)
    spread_short_rows(Spreader spreader, ReduceShape shape, const typename Spreader::Element* x,
                      typename Spreader::Element* dx) {
  using T = typename Spreader::Element;
  constexpr int ahead = reduce_ahead;
  ShortRows rows(shape);
  int column = threadIdx.x * V;
  if (column >= shape.count) return;
  Vector<T, V> values[ahead];
  typename Spreader::Part parts[ahead];
  int64_t offset[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i)
    if (rows.exists(i)) {
      offset[i] = shape.first + shape.kept.offset(rows.line(i)) + column;
      if constexpr (Spreader::reads) values[i] = load<V>(x + offset[i]);
      parts[i] = spreader.part(rows.line(i));
    }
#pragma unroll
  for (int i = 0; i < ahead; ++i)
    if (rows.exists(i)) {
#pragma unroll
      for (int k = 0; k < V; ++k) values[i].lane[k] = spreader.at(parts[i], values[i].lane[k]);
      store<V>(dx + offset[i], values[i]);
    }
}

template <int V, class Spreader>
Status spread_lines_by(const Executor& executor, const Spreader& spreader, const ReduceShape& shape,
                       const typename Spreader::Element* x, typename Spreader::Element* dx) {
  if (ShortRows::fit(shape, V)) {
    spread_short_rows<V>
        <<<ShortRows::blocks(shape, V), ShortRows::threads(shape, V), 0, executor.stream>>>(spreader, shape, x, dx);
    return launched();
  }
  // Parts need no states; there may be as many as fill the device.
  ReduceGrid grid(shape, V, shape.results() << 16);
  spread_cells<V><<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(spreader, shape, grid, x, dx);
  return launched();
}

}  // namespace internal

template <class Reducer>
Status reduce_lines(const Executor& executor, const Reducer& reducer, const ReduceShape& shape,
                    const typename Reducer::Element* x) {
  constexpr int V = internal::reduce_width<typename Reducer::Element>;
  if (shape.results() == 0) return {};
  if constexpr (V > 1)
    if (internal::reduce_aligned(shape, V)) return internal::reduce_lines_by<V>(executor, reducer, shape, x);
  return internal::reduce_lines_by<1>(executor, reducer, shape, x);
}

template <class Spreader>
Status spread_lines(const Executor& executor, const Spreader& spreader, const ReduceShape& shape,
                    const typename Spreader::Element* x, typename Spreader::Element* dx) {
  constexpr int V = internal::reduce_width<typename Spreader::Element>;
  if (shape.results() * shape.count == 0) return {};
  if constexpr (V > 1)
    if (internal::reduce_aligned(shape, V)) return internal::spread_lines_by<V>(executor, spreader, shape, x, dx);
  return internal::spread_lines_by<1>(executor, spreader, shape, x, dx);
}

}  // namespace baracuda
