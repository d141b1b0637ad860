// The reduce pattern on a CUDA grid.
//
// Threads have V neighbours at a time, 16 bytes where they can. The lanes of a row are threads beside each other, up to
// a block. In columns a thread has V of them, and groups of threads take turns at the cells of a line. Where lines are
// too few to fill the device, or so long that sums would lose digits, they are cut into parts, whose states a second
// kernel puts together.
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

template <class T, int V, int n>
struct LoadedCells {
  Vector<T, V> row[n];
  __device__ __forceinline__ const T& operator()(int i, int k) const { return row[i].lane[k]; }
};

// The state of the thread's lanes.
template <int V, class Reducer>
__device__ auto reduce_cells(const Reducer& reducer, const ReduceShape& shape, const ReducePlace& place,
                             const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  constexpr int ahead = reduce_ahead;
  typename Reducer::template State<V> s;
  reducer.none(s);
  if (!place.exists) return s;
  x += place.first(shape);
  int64_t e = place.begin;
  for (; e + (ahead - 1) * place.step < place.end; e += ahead * place.step) {
    LoadedCells<T, V, ahead> cells;
#pragma unroll
    for (int i = 0; i < ahead; ++i) cells.row[i] = load<V>(x + shape.reduced.offset(e + i * place.step));
    reducer.template push<V, ahead>(s, cells);
  }
  for (; e < place.end; e += place.step) {
    LoadedCells<T, V, 1> cells{{load<V>(x + shape.reduced.offset(e))}};
    reducer.template push<V, 1>(s, cells);
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
  auto lanes = reduce_cells<V>(reducer, shape, place, x);
  State s = lanes.lane(0);
#pragma unroll
  for (int k = 1; k < V; ++k) reducer.merge(s, lanes.lane(k));
  s = of_row(reducer, s, shared);
  if (threadIdx.x > 0 || !place.exists) return;
  if (states)
    states[place.line * grid.parts + blockIdx.y] = s;
  else
    reducer.template finish<1>(s, place.line);
}

template <int V, class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_columns(Reducer reducer, ReduceShape shape, ReduceGrid grid, const typename Reducer::Element* x,
                   typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<V>;
  __shared__ State shared[reduce_block];
  ReducePlace place(shape, grid, V);
  State s = reduce_cells<V>(reducer, shape, place, x);
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
  for (int64_t e = place.begin; e < place.end; e += ahead * place.step) {
    Vector<T, V> values[ahead];
    int64_t offset[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (e + i * place.step < place.end) {
        offset[i] = first + shape.reduced.offset(e + i * place.step);
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
Status spread_lines_by(const Executor& executor, const Spreader& spreader, const ReduceShape& shape,
                       const typename Spreader::Element* x, typename Spreader::Element* dx) {
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
