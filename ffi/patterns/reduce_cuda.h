// The reduce pattern on a CUDA grid.
//
// Threads have V neighbors at a time, 16 bytes where they can, and load several times before they use any. The lanes
// of a row are threads next to each other, up to a block; of rows that a warp loads at once it has several. In columns
// a thread has V of them, and groups of threads take turns at the elements of a slice. Where slices are too few to fill
// the device, or so long that sums would lose digits, they are cut into parts, whose states a second kernel puts
// together.
#pragma once

#include "../kernels/number.h"
#include "reduce.h"
#include "row_team_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int reduce_block = 256;

// Neighbors of 16 bytes, but no more than 8.
template <class T>
inline constexpr int reduce_width = sizeof(T) == 1 ? 8 : 16 / int(sizeof(T));

// Loads before any is used. In rows all are pushed to one state: more of 16 bits would leave registers for fewer
// threads.
inline constexpr int reduce_ahead = 4;
template <class T>
inline constexpr int reduce_ahead_in_rows = sizeof(T) == 2 ? 2 : reduce_ahead;

// Which threads have which elements, by the shape alone. The caller's size of the workspace follows from the same
// numbers.
struct ReduceGrid {
  int lanes, groups, slices;  // threads of a block: of neighbors, of other elements of the slice, of other slices
  bool rows;
  int64_t tiles;  // of lanes in the columns of a slice
  int64_t parts = 1, length;

  ReduceGrid(const ReduceShape& shape, int V, int64_t ahead_in_rows, int64_t most_states) : rows(shape.columns == 1) {
    constexpr int64_t wanted_blocks = 132 * 8, longest = 256;
    int64_t count = shape.count, ahead = rows ? ahead_in_rows : reduce_ahead;
    lanes = groups = 1;
    if (rows) {
      // Merging lanes costs more than a few pushes.
      while (lanes < reduce_block && int64_t(lanes) * V * (lanes < 32 ? 2 : reduce_ahead) < count) lanes *= 2;
    } else {
      int64_t wide = ceil_div(shape.columns, V);
      lanes = int(wide < 32 ? wide : 32);
      while (2 * groups * lanes <= reduce_block && 2 * groups * ahead <= count) groups *= 2;
      while (2 * lanes * groups <= reduce_block && lanes < wide) lanes *= 2;
      if (lanes > wide) lanes = int(wide);
    }
    slices = reduce_block / (lanes * groups);
    if (!rows && slices > 64) slices = 64;  // CUDA's limit to a block's third dimension
    tiles = rows ? 1 : ceil_div(shape.columns, int64_t(lanes) * V);
    // A thread of a part pushes several times, and not so often that its sum loses digits.
    int64_t elements = (rows ? lanes * V : groups) * ahead, blocks = ceil_div(shape.slices, slices) * tiles;
    if (blocks < wanted_blocks) parts = ceil_div(wanted_blocks, blocks);
    if (parts > count / (8 * elements)) parts = count / (8 * elements);
    if (parts < ceil_div(count, longest * elements)) parts = ceil_div(count, longest * elements);
    int64_t most = shape.results() > 0 ? most_states / shape.results() : 1;
    if (parts > most) parts = most;
    if (parts > 65535) parts = 65535;
    if (parts < 1) parts = 1;
    length = ceil_div(ceil_div(count, parts), elements) * elements;
    if (length < 1) length = 1;
    parts = count > length ? ceil_div(count, length) : 1;
  }
  dim3 blocks(const ReduceShape& shape) const {
    return dim3(unsigned(ceil_div(shape.slices, slices) * tiles), unsigned(parts));
  }
  dim3 threads() const {
    return rows ? dim3(unsigned(lanes), unsigned(slices)) : dim3(unsigned(lanes), unsigned(groups), unsigned(slices));
  }
};

// What a thread has: V lanes from `column` on, of the elements begin, begin + step, ... of a slice.
struct ReducePosition {
  int64_t slice, column, begin, end, step;
  bool exists;

  __device__ ReducePosition(const ReduceShape& shape, const ReduceGrid& grid, int V) {
    int64_t block = blockIdx.x, tile = 0;
    if (grid.tiles > 1) block = blockIdx.x / unsigned(grid.tiles), tile = blockIdx.x - block * grid.tiles;
    slice = block * grid.slices + (grid.rows ? threadIdx.y : threadIdx.z);
    column = grid.rows ? 0 : (tile * grid.lanes + threadIdx.x) * V;
    exists = slice < shape.slices && column < shape.columns;
    begin = blockIdx.y * grid.length;
    end = min(begin + grid.length, shape.count);
    begin += grid.rows ? threadIdx.x * V : threadIdx.y;
    step = grid.rows ? grid.lanes * V : grid.groups;
  }
  __device__ int64_t first(const ReduceShape& shape) const { return shape.first + shape.kept.offset(slice) + column; }
};

// Offsets of the elements begin, begin + step, ... of a slice. Of two dimensions, too, they are sums.
struct ElementWalk {
  const ElementDimensions& elements;
  int64_t at, index, step;
  int64_t jump, inner, inner_jump, inner_size, wrap;

  __device__ ElementWalk(const ElementDimensions& elements, int64_t begin, int64_t step)
      : elements(elements), at(elements.offset(begin)), index(begin), step(step), jump(step * elements.inner_step()) {
    if (elements.rank != 2) return;
    const Extent& size = elements.extent[1];
    int64_t over = size.quotient(step);
    inner_size = size.size, inner = begin - size.quotient(begin) * inner_size, inner_jump = step - over * inner_size;
    jump = over * elements.step[0] + inner_jump * elements.step[1],
    wrap = elements.step[0] - inner_size * elements.step[1];
  }
  // The offset, which then is that of the next.
  __device__ __forceinline__ int64_t take() {
    int64_t here = at;
    index += step;
    if (elements.rank > 2) {
      at = elements.offset(index);
    } else {
      at += jump;
      if (elements.rank == 2) {
        inner += inner_jump;
        if (inner >= inner_size) inner -= inner_size, at += wrap;
      }
    }
    return here;
  }
};

// The same of elements next to each other: a row in memory, in a few instructions.
struct RowWalk {
  int64_t at, step;

  __device__ RowWalk(const ElementDimensions&, int64_t begin, int64_t step) : at(begin), step(step) {}
  static bool fits(const ElementDimensions& elements) { return elements.rank <= 1 && elements.inner_step() == 1; }
  __device__ __forceinline__ int64_t take() {
    int64_t here = at;
    at += step;
    return here;
  }
};

// Loads of V neighbors, as n elements of each of V lanes, or as n V elements of a row.
template <class T, int V, int n, bool rows>
struct LoadedElements {
  Vector<T, V> load[n];
  __device__ __forceinline__ const T& operator()(int i, int k) const {
    return rows ? load[i / V].lane[i % V] : load[i].lane[k];
  }
};

// The state of the thread's lanes, of which a row has one.
template <int V, bool rows, class Walk, class Reducer>
__device__ auto reduce_elements(const Reducer& reducer, const ReduceShape& shape, const ReducePosition& position,
                                const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  constexpr int ahead = rows ? reduce_ahead_in_rows<T> : reduce_ahead, lanes = rows ? 1 : V, elements = rows ? V : 1;
  typename Reducer::template State<lanes> s;
  reducer.none(s);
  if (!position.exists) return s;
  x += position.first(shape);
  Walk walk(shape.reduced, position.begin, position.step);
  for (int64_t e = position.begin; e < position.end; e += ahead * position.step) {
    LoadedElements<T, V, ahead, rows> loaded;
    if (e + (ahead - 1) * position.step < position.end) {
#pragma unroll
      for (int i = 0; i < ahead; ++i) loaded.load[i] = load<V>(x + walk.take());
      reducer.template push<lanes, ahead * elements>(s, loaded);
    } else {
#pragma unroll
      for (int i = 0; i < ahead - 1; ++i)
        if (e + i * position.step < position.end) loaded.load[i] = load<V>(x + walk.take());
#pragma unroll
      for (int i = 0; i < ahead - 1; ++i)
        if (e + i * position.step < position.end)
          reducer.template push<lanes, elements>(s, LoadedElements<T, V, 1, rows>{{loaded.load[i]}});
    }
  }
  return s;
}

// Where there are several parts, `states` are [slices, columns, parts].
template <int V, class Walk, class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_rows(Reducer reducer, ReduceShape shape, ReduceGrid grid, const typename Reducer::Element* x,
                typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<1>;
  __shared__ State shared[reduce_block / 32];
  ReducePosition position(shape, grid, V);
  State s = of_row(reducer, reduce_elements<V, true, Walk>(reducer, shape, position, x), shared);
  if (threadIdx.x > 0 || !position.exists) return;
  if (states)
    states[position.slice * grid.parts + blockIdx.y] = s;
  else
    reducer.template finish<1>(s, position.slice);
}

// Rows of one load of each of up to 32 lanes: a thread has several of them.
struct ShortRows {
  int64_t first, apart, slices;

  __device__ explicit ShortRows(const ReduceShape& shape)
      : first(blockIdx.x * int64_t(blockDim.y) * reduce_ahead + threadIdx.y), apart(blockDim.y), slices(shape.slices) {}
  __device__ int64_t slice(int i) const { return first + i * apart; }
  __device__ bool exists(int i) const { return slice(i) < slices; }

  static bool fit(const ReduceShape& shape, int V) {
    return shape.columns == 1 && shape.reduced.rank <= 1 && shape.reduced.inner_step() == 1 && shape.count <= 32 * V;
  }
  static dim3 threads(const ReduceShape& shape, int V) {
    int lanes = 1;
    while (lanes * V < shape.count) lanes *= 2;
    return dim3(unsigned(lanes), unsigned(reduce_block / lanes));
  }
  static dim3 blocks(const ReduceShape& shape, int V) {
    return dim3(unsigned(ceil_div(shape.slices, int64_t(threads(shape, V).y) * reduce_ahead)));
  }
};

template <int V, class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_short_rows(Reducer reducer, ReduceShape shape, const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  ShortRows rows(shape);
  int column = threadIdx.x * V;
  bool has_elements = column < shape.count;
  LoadedElements<T, V, 1, true> loaded[reduce_ahead];
#pragma unroll
  for (int i = 0; i < reduce_ahead; ++i)
    if (has_elements && rows.exists(i))
      loaded[i].load[0] = load<V>(x + shape.first + shape.kept.offset(rows.slice(i)) + column);
#pragma unroll
  for (int i = 0; i < reduce_ahead; ++i) {
    typename Reducer::template State<1> s;
    reducer.none(s);
    if (has_elements && rows.exists(i)) reducer.template push<1, V>(s, loaded[i]);
    s = of_lanes(reducer, s, blockDim.x);
    if (threadIdx.x == 0 && rows.exists(i)) reducer.template finish<1>(s, rows.slice(i));
  }
}

template <int V, class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_columns(Reducer reducer, ReduceShape shape, ReduceGrid grid, const typename Reducer::Element* x,
                   typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<V>;
  __shared__ State shared[reduce_block];
  ReducePosition position(shape, grid, V);
  State s = reduce_elements<V, false, ElementWalk>(reducer, shape, position, x);
  int thread = (threadIdx.z * grid.groups + threadIdx.y) * grid.lanes + threadIdx.x;
  for (int half = grid.groups / 2; half > 0; half /= 2) {
    __syncthreads();
    shared[thread] = s;
    __syncthreads();
    if (threadIdx.y < half) reducer.merge(s, shared[thread + half * grid.lanes]);
  }
  if (threadIdx.y > 0 || !position.exists) return;
  int64_t element = position.slice * shape.columns + position.column;
  if (!states) return reducer.template finish<V>(s, element);
#pragma unroll
  for (int k = 0; k < V; ++k) states[(element + k) * grid.parts + blockIdx.y] = s.lane(k);
}

// A warp for the parts of each element of y.
template <class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_parts(Reducer reducer, int64_t elements, int64_t parts, const typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<1>;
  int64_t element = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  State s;
  reducer.none(s);
  if (element < elements)
    for (int64_t part = threadIdx.x; part < parts; part += 32) reducer.merge(s, states[element * parts + part]);
  s = of_row(reducer, s, static_cast<State*>(nullptr));
  if (threadIdx.x == 0 && element < elements) reducer.template finish<1>(s, element);
}

template <int V, class Reducer>
Status reduce_slices_by(Executor executor, const Reducer& reducer, const ReduceShape& shape,
                        const typename Reducer::Element* x) {
  using State = typename Reducer::template State<1>;
  if (ShortRows::fit(shape, V)) {
    reduce_short_rows<V>
        <<<ShortRows::blocks(shape, V), ShortRows::threads(shape, V), 0, executor.stream>>>(reducer, shape, x);
    return launched();
  }
  ReduceGrid grid(shape, V, reduce_ahead_in_rows<typename Reducer::Element>,
                  int64_t(executor.workspace_bytes / 256 * 256 / sizeof(State)));
  State* states = grid.parts > 1 ? executor.scratch<State>(shape.results() * grid.parts) : nullptr;
  if (grid.parts > 1 && !states) return small_workspace;
  if (grid.rows && RowWalk::fits(shape.reduced))
    reduce_rows<V, RowWalk>
        <<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(reducer, shape, grid, x, states);
  else if (grid.rows)
    reduce_rows<V, ElementWalk>
        <<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(reducer, shape, grid, x, states);
  else
    reduce_columns<V><<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(reducer, shape, grid, x, states);
  if (states) {
    dim3 threads(32, reduce_block / 32), blocks(unsigned(ceil_div(shape.results(), threads.y)));
    reduce_parts<<<blocks, threads, 0, executor.stream>>>(reducer, shape.results(), grid.parts, states);
  }
  return launched();
}

// Whether all loads of V neighbors begin at multiples of V.
inline bool reduce_aligned(const ReduceShape& shape, int V) {
  if (shape.columns == 1) return shape.has_rows() && shape.reduced.inner() % V == 0;
  return shape.first == 0 && shape.columns % V == 0;
}

template <int V, class Broadcaster>
__global__ void __launch_bounds__(reduce_block)
    broadcast_elements(Broadcaster broadcaster, ReduceShape shape, ReduceGrid grid,
                       const typename Broadcaster::Element* x, typename Broadcaster::Element* dx) {
  using T = typename Broadcaster::Element;
  constexpr int ahead = reduce_ahead;
  ReducePosition position(shape, grid, V);
  if (!position.exists) return;
  typename Broadcaster::Part parts[V];
  int64_t element = position.slice * shape.columns + position.column;
#pragma unroll
  for (int k = 0; k < V; ++k)
    if (k == 0 || !grid.rows)
      parts[k] = broadcaster.part(element + k);
    else
      parts[k] = parts[0];
  int64_t first = position.first(shape);
  ElementWalk walk(shape.reduced, position.begin, position.step);
  for (int64_t e = position.begin; e < position.end; e += ahead * position.step) {
    Vector<T, V> values[ahead];
    int64_t offset[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (e + i * position.step < position.end) {
        offset[i] = first + walk.take();
        if constexpr (Broadcaster::reads) values[i] = load<V>(x + offset[i]);
      }
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (e + i * position.step < position.end) {
#pragma unroll
        for (int k = 0; k < V; ++k) values[i].lane[k] = broadcaster.at(parts[k], values[i].lane[k]);
        store<V>(dx + offset[i], values[i]);
      }
  }
}

template <int V, class Broadcaster>
__global__ void __launch_bounds__(reduce_block)
    broadcast_short_rows(Broadcaster broadcaster, ReduceShape shape, const typename Broadcaster::Element* x,
                         typename Broadcaster::Element* dx) {
  using T = typename Broadcaster::Element;
  ShortRows rows(shape);
  int column = threadIdx.x * V;
  if (column >= shape.count) return;
  Vector<T, V> values[reduce_ahead];
  typename Broadcaster::Part parts[reduce_ahead];
  int64_t offset[reduce_ahead];
#pragma unroll
  for (int i = 0; i < reduce_ahead; ++i)
    if (rows.exists(i)) {
      offset[i] = shape.first + shape.kept.offset(rows.slice(i)) + column;
      if constexpr (Broadcaster::reads) values[i] = load<V>(x + offset[i]);
      parts[i] = broadcaster.part(rows.slice(i));
    }
#pragma unroll
  for (int i = 0; i < reduce_ahead; ++i)
    if (rows.exists(i)) {
#pragma unroll
      for (int k = 0; k < V; ++k) values[i].lane[k] = broadcaster.at(parts[i], values[i].lane[k]);
      store<V>(dx + offset[i], values[i]);
    }
}

template <int V, class Broadcaster>
Status broadcast_slices_by(const Executor& executor, const Broadcaster& broadcaster, const ReduceShape& shape,
                           const typename Broadcaster::Element* x, typename Broadcaster::Element* dx) {
  if (ShortRows::fit(shape, V)) {
    broadcast_short_rows<V>
        <<<ShortRows::blocks(shape, V), ShortRows::threads(shape, V), 0, executor.stream>>>(broadcaster, shape, x, dx);
    return launched();
  }
  // Parts need no states; there may be as many as fill the device.
  ReduceGrid grid(shape, V, reduce_ahead, shape.results() << 16);
  broadcast_elements<V><<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(broadcaster, shape, grid, x, dx);
  return launched();
}

}  // namespace internal

template <class Reducer>
Status reduce_slices(const Executor& executor, const Reducer& reducer, const ReduceShape& shape,
                     const typename Reducer::Element* x) {
  constexpr int V = internal::reduce_width<typename Reducer::Element>;
  if (shape.results() == 0) return {};
  if constexpr (V > 1)
    if (internal::reduce_aligned(shape, V)) return internal::reduce_slices_by<V>(executor, reducer, shape, x);
  return internal::reduce_slices_by<1>(executor, reducer, shape, x);
}

template <class Broadcaster>
Status broadcast_slices(const Executor& executor, const Broadcaster& broadcaster, const ReduceShape& shape,
                        const typename Broadcaster::Element* x, typename Broadcaster::Element* dx) {
  constexpr int V = internal::reduce_width<typename Broadcaster::Element>;
  if (shape.results() * shape.count == 0) return {};
  if constexpr (V > 1)
    if (internal::reduce_aligned(shape, V))
      return internal::broadcast_slices_by<V>(executor, broadcaster, shape, x, dx);
  return internal::broadcast_slices_by<1>(executor, broadcaster, shape, x, dx);
}

}  // namespace baracuda
