// The reduce pattern on a CUDA grid.
//
// Threads have V neighbors at a time, 16 bytes of a row and 8 of columns where they can, and load several times before
// they use any. The lanes of a row are threads next to each other, a warp or a block; short rows are reduced from tiles
// in shared memory (row_tiles_cuda.h), and rows that are not aligned from chunks (row_chunks_cuda.h). In columns a
// thread has V of them, and groups of threads take turns at the elements of a slice. Where slices are too few to fill
// the device, or so long that sums would lose digits, they are cut into parts, whose states a second kernel puts
// together.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "reduce.h"
#include "row_chunks_cuda.h"
#include "row_team_cuda.h"
#include "row_tiles_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int reduce_block = 256;

// Neighbors of a row: 16 bytes, but no more than 8.
template <class T>
inline constexpr int reduce_width = sizeof(T) == 1 ? 8 : 16 / int(sizeof(T));
// Columns of a thread, each of which has a state of its own: more would leave registers for fewer threads.
template <class T>
inline constexpr int reduce_columns_width = sizeof(T) < 8 ? 8 / int(sizeof(T)) : 1;

// Loads before any is used.
inline constexpr int reduce_ahead = 4, reduce_ahead_in_columns = 8;
// Of a row all are pushed to one state: more of 16 bits would leave registers for fewer threads.
template <class T, int V>
inline constexpr int reduce_ahead_in_rows = V == 1 ? 8 : (sizeof(T) == 2 ? 2 : reduce_ahead);

// Blocks of reductions that a multiprocessor has at a time: exponentials of doubles need more registers.
template <class T>
inline constexpr int reduce_column_blocks = sizeof(T) < 8 ? 4 : 2;
template <class T>
inline constexpr int reduce_row_blocks = sizeof(T) == 2 ? 5 : (sizeof(T) < 8 ? 4 : 2);

// Which threads have which elements, by the shape alone. The caller's size of the workspace follows from the same
// numbers.
struct ReduceGrid {
  int lanes, groups, slices;  // threads of a block: of neighbors, of other elements of the slice, of other slices
  bool rows;
  int64_t tiles;  // of lanes in the columns of a slice
  int64_t parts = 1, length;

  // At a time the device has `at_once` blocks that merge states; 0 where nothing is merged.
  ReduceGrid(const ReduceShape& shape, int V, int64_t ahead_in_rows, int64_t most_states, int64_t at_once)
      : rows(shape.columns == 1) {
    constexpr int64_t wanted_blocks = 132 * 8, longest = 256;
    int64_t count = shape.count, ahead = rows ? ahead_in_rows : reduce_ahead;
    lanes = groups = 1;
    if (rows) {
      // Merging lanes costs more than a few pushes. Where rows are many, a warp has each.
      bool many = at_once > 0 && shape.slices >= 132 * 64 && count <= 1 << 16;
      while (lanes < (many ? 32 : reduce_block) && int64_t(lanes) * V * (lanes < 32 ? 2 : reduce_ahead) < count)
        lanes *= 2;
    } else {
      int64_t wide = ceil_div(shape.columns, V);
      lanes = int(wide < 32 ? wide : 32);
      // Columns that keep the device busy alone need no groups.
      while (2 * groups * lanes <= reduce_block && 2 * groups * ahead <= count &&
             (at_once == 0 || wide * shape.slices * groups < 132 * 2048))
        groups *= 2;
      while (2 * lanes * groups <= reduce_block && lanes < wide) lanes *= 2;
      if (lanes > wide) lanes = int(wide);
    }
    slices = reduce_block / (lanes * groups);
    if (!rows && slices > 64) slices = 64;  // CUDA's limit to a block's third dimension
    tiles = rows ? 1 : ceil_div(shape.columns, int64_t(lanes) * V);
    // A thread of a part pushes several times, and not so often that its sum loses digits.
    int64_t elements = (rows ? lanes * V : groups) * ahead, blocks = ceil_div(shape.slices, slices) * tiles;
    if (at_once > 0) {
      // As many as run at a time, or twice as many, where these leave less of the device idle.
      parts = at_once / blocks;
      if (parts * blocks * 8 < at_once * 7 && blocks < 2 * at_once) parts = 2 * at_once / blocks;
    } else if (blocks < wanted_blocks) {
      parts = ceil_div(wanted_blocks, blocks);
    }
    int64_t most_parts = count / (8 * elements);
    // Less than half of the device: then two pushes of each thread.
    if (int64_t short_parts = count / (2 * elements); at_once > 0 && most_parts * blocks < 66 && short_parts >= 4)
      most_parts = std::min(short_parts, ceil_div(264, blocks));
    if (parts > most_parts) parts = most_parts;
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

// Offsets of the elements begin, begin + step, ... of a slice. What is the same for all threads is found once, so that
// it takes none of their registers. Here elements are equally far apart.
struct EqualSteps {
  int64_t apart, jump;

  EqualSteps(const ElementDimensions& elements, int64_t step)
      : apart(elements.inner_step()), jump(step * elements.inner_step()) {}
  static bool fit(const ElementDimensions& elements) { return elements.rank <= 1; }

  struct At {
    int64_t offset;
  };
  __device__ At at(const ElementDimensions&, int64_t begin) const { return {begin * apart}; }
  // The offset, which then is that of the next.
  __device__ __forceinline__ int64_t take(const ElementDimensions&, At& at) const {
    int64_t here = at.offset;
    at.offset += jump;
    return here;
  }
};

// The same of up to two dimensions: offsets are sums, too.
struct PairSteps {
  int64_t jump, wrap = 0;
  int32_t inner_jump = 0, inner_size = 1;

  PairSteps(const ElementDimensions& elements, int64_t step) : jump(step * elements.inner_step()) {
    if (elements.rank < 2) return;
    int64_t size = elements.extent[1].size, over = step / size;
    inner_size = int32_t(size), inner_jump = int32_t(step - over * size);
    jump = over * elements.step[0] + inner_jump * elements.step[1];
    wrap = elements.step[0] - size * elements.step[1];
  }
  static bool fit(const ElementDimensions& elements) {
    return elements.rank < 2 || (elements.rank == 2 && elements.extent[1].size < int64_t(1) << 30);
  }

  struct At {
    int64_t offset;
    int32_t inner;
  };
  __device__ At at(const ElementDimensions& elements, int64_t begin) const {
    if (elements.rank < 2) return {elements.offset(begin), 0};
    return {elements.offset(begin), int32_t(begin - elements.extent[1].quotient(begin) * inner_size)};
  }
  __device__ __forceinline__ int64_t take(const ElementDimensions&, At& at) const {
    int64_t here = at.offset;
    at.offset += jump, at.inner += inner_jump;
    if (at.inner >= inner_size) at.inner -= inner_size, at.offset += wrap;
    return here;
  }
};

// The same of any dimensions.
struct AnySteps {
  PairSteps pair;
  int64_t step;
  bool by_index;

  AnySteps(const ElementDimensions& elements, int64_t step)
      : pair(elements, step), step(step), by_index(!PairSteps::fit(elements)) {}

  struct At {
    PairSteps::At pair;
    int64_t index;
  };
  __device__ At at(const ElementDimensions& elements, int64_t begin) const { return {pair.at(elements, begin), begin}; }
  __device__ __forceinline__ int64_t take(const ElementDimensions& elements, At& at) const {
    if (!by_index) return pair.take(elements, at.pair);
    int64_t here = elements.offset(at.index);
    at.index += step;
    return here;
  }
};

template <int n, int V, bool rows, class Next, class T>
__device__ LoadedElements<T, V, n, rows> load_elements(const T* x, const Next& next) {
  LoadedElements<T, V, n, rows> loaded;
#pragma unroll
  for (int i = 0; i < n; ++i) loaded.load[i] = load<V>(x + next());
  return loaded;
}

// `left` loads, fewer than 2 n. All are on their way before any is used.
template <int n, int V, bool rows, class Reducer, class State, class T, class Next>
__device__ void push_last(const Reducer& reducer, State& s, const T* x, const Next& next, int left) {
  LoadedElements<T, V, n, rows> loaded;
  if (left >= n) loaded = load_elements<n, V, rows>(x, next);
  if constexpr (n > 1) push_last<n / 2, V, rows>(reducer, s, x, next, left >= n ? left - n : left);
  if (left >= n) reducer.template push<rows ? 1 : V, n * (rows ? V : 1)>(s, loaded);
}

// The state of the thread's lanes, of which a row has one.
template <int V, bool rows, class Walk, class Reducer>
__device__ auto reduce_elements(const Reducer& reducer, const ReduceShape& shape, const Walk& walk,
                                const ReducePosition& position, const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  constexpr int ahead = rows ? reduce_ahead_in_rows<T, V> : reduce_ahead_in_columns, lanes = rows ? 1 : V,
                elements = ahead * (rows ? V : 1);
  typename Reducer::template State<lanes> s;
  reducer.none(s);
  if (!position.exists) return s;
  x += position.first(shape);
  auto at = walk.at(shape.reduced, position.begin);
  auto next = [&] { return walk.take(shape.reduced, at); };
  int64_t e = position.begin, step = position.step;
#pragma unroll 1
  for (; e + (ahead - 1) * step < position.end; e += ahead * step)
    reducer.template push<lanes, elements>(s, load_elements<ahead, V, rows>(x, next));
  int left = 0, elements_left = int(position.end - e);
#pragma unroll
  for (int i = 0; i < ahead - 1; ++i) left += i * int(step) < elements_left;
  if constexpr (ahead > 1) push_last<ahead / 2, V, rows>(reducer, s, x, next, left);
  return s;
}

// Where there are several parts, `states` are [slices, columns, parts].
template <int V, class Walk, class Reducer>
__global__ void __launch_bounds__(reduce_block, reduce_row_blocks<typename Reducer::Element>)
    reduce_rows(Reducer reducer, ReduceShape shape, ReduceGrid grid, Walk walk, const typename Reducer::Element* x,
                typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<1>;
  __shared__ State shared[reduce_block / 32];
  ReducePosition position(shape, grid, V);
  State s = of_row(reducer, reduce_elements<V, true>(reducer, shape, walk, position, x), shared);
  if (threadIdx.x > 0 || !position.exists) return;
  if (states)
    states[position.slice * grid.parts + blockIdx.y] = s;
  else
    reducer.template finish<1>(s, position.slice);
}

template <int V, class Walk, class Reducer>
__global__ void __launch_bounds__(reduce_block, reduce_column_blocks<typename Reducer::Element>)
    reduce_columns(Reducer reducer, ReduceShape shape, ReduceGrid grid, Walk walk, const typename Reducer::Element* x,
                   typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<V>;
  __shared__ State shared[reduce_block];
  ReducePosition position(shape, grid, V);
  State s = reduce_elements<V, false>(reducer, shape, walk, position, x);
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

// Some threads for the parts of each element of y.
template <class Reducer>
__global__ void __launch_bounds__(reduce_block)
    reduce_parts(Reducer reducer, int64_t elements, int64_t parts, const typename Reducer::template State<1>* states) {
  using State = typename Reducer::template State<1>;
  __shared__ State shared[reduce_block / 32];
  int64_t element = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  State s;
  reducer.none(s);
  if (element < elements)
    for (int64_t part = threadIdx.x; part < parts; part += blockDim.x) reducer.merge(s, states[element * parts + part]);
  s = of_row(reducer, s, shared);
  if (threadIdx.x == 0 && element < elements) reducer.template finish<1>(s, element);
}

template <class Reducer>
void merge_parts(const Executor& executor, const Reducer& reducer, int64_t elements, int64_t parts,
                 const typename Reducer::template State<1>* states) {
  unsigned lanes = 1;
  while (lanes < reduce_block && lanes < parts && lanes * elements < (1 << 16)) lanes *= 2;
  dim3 threads(lanes, reduce_block / lanes), blocks(unsigned(ceil_div(elements, threads.y)));
  reduce_parts<<<blocks, threads, 0, executor.stream>>>(reducer, elements, parts, states);
}

template <bool rows, int V, class Walk, class Reducer>
Status reduce_slices_by(Executor executor, const Reducer& reducer, const ReduceShape& shape,
                        const typename Reducer::Element* x) {
  using State = typename Reducer::template State<1>;
  ReduceGrid grid(
      shape, V, sizeof(typename Reducer::Element) == 2 ? 2 : reduce_ahead,
      int64_t(executor.workspace_bytes / 256 * 256 / sizeof(State)),
      132 * (rows ? reduce_row_blocks<typename Reducer::Element> : reduce_column_blocks<typename Reducer::Element>));
  State* states = grid.parts > 1 ? executor.scratch<State>(shape.results() * grid.parts) : nullptr;
  if (grid.parts > 1 && !states) return small_workspace;
  Walk walk(shape.reduced, rows ? grid.lanes * V : grid.groups);
  auto kernel = [] {
    if constexpr (rows)
      return reduce_rows<V, Walk, Reducer>;
    else
      return reduce_columns<V, Walk, Reducer>;
  }();
  kernel<<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(reducer, shape, grid, walk, x, states);
  if (states) merge_parts(executor, reducer, shape.results(), grid.parts, states);
  return launched();
}

// Rows that are not aligned.
template <class Reducer>
Status reduce_chunks(Executor executor, const Reducer& reducer, const ReduceShape& shape,
                     const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  using State = typename Reducer::template State<1>;
  RowChunks<T> chunks(shape, int64_t(executor.workspace_bytes / 256 * 256 / sizeof(State)));
  State* states = chunks.parts > 1 ? executor.scratch<State>(shape.slices * chunks.parts) : nullptr;
  if (chunks.parts > 1 && !states) return small_workspace;
  dim3 blocks(unsigned(ceil_div(shape.slices, chunks.rows)), unsigned(chunks.parts));
  reduce_row_chunks<<<blocks, dim3(32 * chunks.of_row, chunks.rows), 0, executor.stream>>>(reducer, shape, chunks, x,
                                                                                           states);
  if (states) merge_parts(executor, reducer, shape.slices, chunks.parts, states);
  return launched();
}

// Whether all loads of V neighbors begin at multiples of V.
inline bool reduce_aligned(const ReduceShape& shape, int V) {
  if (shape.columns == 1) return shape.has_rows() && shape.reduced.inner() % V == 0;
  return shape.first == 0 && shape.columns % V == 0;
}

template <int V, class Broadcaster>
__global__ void __launch_bounds__(reduce_block)
    broadcast_elements(Broadcaster broadcaster, ReduceShape shape, ReduceGrid grid, AnySteps walk,
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
  auto at = walk.at(shape.reduced, position.begin);
  for (int64_t e = position.begin; e < position.end; e += ahead * position.step) {
    Vector<T, V> values[ahead];
    int64_t offset[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (e + i * position.step < position.end) {
        offset[i] = first + walk.take(shape.reduced, at);
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
  ReduceGrid grid(shape, V, reduce_ahead, shape.results() << 16, 0);
  AnySteps walk(shape.reduced, grid.rows ? grid.lanes * V : grid.groups);
  broadcast_elements<V>
      <<<grid.blocks(shape), grid.threads(), 0, executor.stream>>>(broadcaster, shape, grid, walk, x, dx);
  return launched();
}

}  // namespace internal

template <class Reducer>
Status reduce_slices(const Executor& executor, const Reducer& reducer, const ReduceShape& shape,
                     const typename Reducer::Element* x) {
  using namespace internal;
  using T = typename Reducer::Element;
  if (shape.results() == 0) return {};
  if (RowTiles<T>::fit(shape)) return reduce_row_tiles(executor, reducer, RowTiles<T>(shape), x);
  auto reduce = [&]<bool rows, int V>(std::bool_constant<rows>, std::integral_constant<int, V>) {
    if constexpr (!rows || V == reduce_width<T> || sizeof(T) > 2)  // others are in chunks
      if (EqualSteps::fit(shape.reduced)) return reduce_slices_by<rows, V, EqualSteps>(executor, reducer, shape, x);
    if constexpr (V > 1)
      if (PairSteps::fit(shape.reduced)) return reduce_slices_by<rows, V, PairSteps>(executor, reducer, shape, x);
    return reduce_slices_by<rows, V, AnySteps>(executor, reducer, shape, x);
  };
  auto choose = [&]<bool rows, int V>(std::bool_constant<rows> by_rows, std::integral_constant<int, V> width) {
    if constexpr (V > 1)
      if (reduce_aligned(shape, V)) return reduce(by_rows, width);
    if constexpr (rows && V > 1)
      if (RowChunks<T>::fit(shape)) return reduce_chunks(executor, reducer, shape, x);
    return reduce(by_rows, std::integral_constant<int, 1>{});
  };
  if (shape.columns == 1) return choose(std::true_type{}, std::integral_constant<int, reduce_width<T>>{});
  return choose(std::false_type{}, std::integral_constant<int, reduce_columns_width<T>>{});
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
