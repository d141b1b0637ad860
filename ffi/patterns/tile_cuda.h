// The tile pattern on a CUDA grid.
//
// Elements are copied by a thread for each element of y. Copies are reduced by threads that have V neighboring
// elements of a row of x; where these are too few to fill the device, or rows so short that neighboring threads would
// read far apart, several groups of threads of a block take turns at the copies, and where that is not enough, several
// blocks have chunks of them, which a second kernel puts together.
#pragma once

#include "tile.h"

namespace baracuda {
namespace internal {

inline constexpr int tile_block = 256, tile_step = 4;
// Below this, 32 bits reach every element, and a step beyond.

template <class Index, class T>
__global__ void __launch_bounds__(tile_block)
    copy_tile_elements(Tiles<Index> tiles, int64_t elements, const T* x, T* y) {
  int64_t first = int64_t(blockIdx.x) * tile_block * tile_step + threadIdx.x;
  T values[tile_step];
  Index to[tile_step];
#pragma unroll
  for (int i = 0; i < tile_step; ++i)
    if (first + i * tile_block < elements) {
      Index index = Index(first + i * tile_block), row = tiles.y_inner.quotient(index);
      Index column = index - row * tiles.y_inner.value;
      auto rows = tiles.rows(row);
      values[i] = x[rows.x + column - tiles.inner.quotient(column) * tiles.inner.value];
      to[i] = rows.y + column;
    }
#pragma unroll
  for (int i = 0; i < tile_step; ++i)
    if (first + i * tile_block < elements) y[to[i]] = values[i];
}

// How the copies of each batch's elements are divided. It follows from the shape of a batch; the caller's size of the
// workspace follows from the same numbers.
struct TileGrid {
  int lanes;        // of V neighboring elements of a row
  int groups;       // of lanes, a power of two: group g has copies g, g + groups, ... of a chunk
  int rows;         // per block
  int64_t columns;  // tiles of lanes * V elements in a row
  int64_t chunks, copies, chunk_copies;
  int64_t total_rows, batch_rows;

  TileGrid(const TileShape& shape, int width, int bytes, bool may_share) {
    constexpr int64_t wanted_threads = 1 << 17, wanted_bytes = 128, few_lanes = 8, few_copies = 4, many_copies = 16;
    constexpr int most_rows = 64;  // CUDA's limit to a block's third dimension
    int64_t row = shape.inner() / width, elements = shape.elements() / width, repeats = shape.inner_repeats();
    int64_t most = tile_block, count = 1;
    for (int64_t least = 1; least < few_lanes && least < row; least *= 2) most /= 2;
    copies = shape.copies();
    auto scattered = [&] { return shape.inner() * bytes * count < wanted_bytes && 2 * count <= repeats; };
    while (count < most && 2 * count * few_copies <= copies && (elements * count < wanted_threads || scattered()))
      count *= 2;
    chunks = 1;
    if (may_share && count == most) {
      chunks = ceil_div(wanted_threads, elements * count);
      if (chunks > copies / (many_copies * count)) chunks = copies / (many_copies * count);
      if (chunks < 1) chunks = 1;
    }
    chunk_copies = ceil_div(copies, chunks);
    groups = int(count);
    columns = ceil_div(row, tile_block / groups);
    lanes = int(ceil_div(row, columns));
    rows = tile_block / (groups * lanes);
    if (rows > most_rows) rows = most_rows;
    batch_rows = shape.elements() / shape.inner();
    total_rows = shape.batches * batch_rows;
    if (rows > total_rows) rows = int(total_rows);
  }
  dim3 blocks() const { return dim3(unsigned(ceil_div(total_rows, rows) * columns), unsigned(chunks)); }
  dim3 threads() const { return dim3(unsigned(lanes), unsigned(groups), unsigned(rows)); }
};

template <bool last, int V, class Index, class Reducer, class Value, class Out>
__global__ void __launch_bounds__(tile_block)
    reduce_tile_copies(Reducer reducer, Tiles<Index> tiles, TileGrid grid, const Value* y, Out* x) {
  using Wide = typename Reducer::Wide;
  __shared__ Wide parts[V][tile_block];
  unsigned block_row = grid.columns == 1 ? blockIdx.x : blockIdx.x / unsigned(grid.columns);
  unsigned block_column = blockIdx.x - block_row * unsigned(grid.columns);
  int group = threadIdx.y, thread = (threadIdx.z * grid.groups + group) * grid.lanes + threadIdx.x;
  int64_t row = int64_t(block_row) * grid.rows + threadIdx.z;
  Index column = (Index(block_column) * grid.lanes + threadIdx.x) * V;
  bool in_range = row < grid.total_rows && column < tiles.inner.value;
  Wide sums[V];
#pragma unroll
  for (int k = 0; k < V; ++k) sums[k] = reducer.start();
  if (in_range) {
    const Value* from = y + tiles.first(Index(row)) + column;
    Index begin = Index(blockIdx.y * grid.chunk_copies), end = begin + Index(grid.chunk_copies);
    if (end > grid.copies) end = Index(grid.copies);
    for (Index copy = begin + group; copy < end; copy += tile_step * grid.groups) {
      Vector<Value, V> values[tile_step];
#pragma unroll
      for (int i = 0; i < tile_step; ++i)
        if (Index c = copy + i * grid.groups; c < end) values[i] = load<V>(from + tiles.offset(c));
#pragma unroll
      for (int i = 0; i < tile_step; ++i)
        if (copy + i * grid.groups < end)
#pragma unroll
          for (int k = 0; k < V; ++k) sums[k] = reducer.add(sums[k], values[i].lane[k]);
    }
  }
  if (grid.groups > 1) {
    for (int half = grid.groups / 2; half > 0; half /= 2) {
      __syncthreads();
#pragma unroll
      for (int k = 0; k < V; ++k) parts[k][thread] = sums[k];
      __syncthreads();
      if (in_range && group < half)
#pragma unroll
        for (int k = 0; k < V; ++k) sums[k] = reducer.add(sums[k], parts[k][thread + half * grid.lanes]);
    }
  }
  if (!in_range || group > 0) return;
  if (grid.chunks > 1) {
    int64_t batch = row / grid.batch_rows;
    row += (batch * (grid.chunks - 1) + blockIdx.y) * grid.batch_rows;
  }
  Vector<Out, V> result;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    if constexpr (last)
      result.lane[k] = reducer.finish(sums[k]);
    else
      result.lane[k] = sums[k];
  }
  store<V>(x + row * tiles.inner.value + column, result);
}

template <bool last, int V, class Reducer, class Value, class Out>
Status reduce_copies_on(const Executor& executor, const Reducer& reducer, const TileShape& shape, const TileGrid& grid,
                        const Value* y, Out* x) {
  auto launch = [&](auto index) {
    using Index = decltype(index);
    reduce_tile_copies<last, V>
        <<<grid.blocks(), grid.threads(), 0, executor.stream>>>(reducer, Tiles<Index>(shape), grid, y, x);
    return launched();
  };
  return shape.y_elements() < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

template <int V, class Reducer>
Status reduce_copies_by(Executor executor, const Reducer& reducer, const TileShape& shape,
                        const typename Reducer::Element* y, typename Reducer::Element* x) {
  using Wide = typename Reducer::Wide;
  TileGrid grid(shape, V, sizeof(*y), true);
  if (grid.chunks == 1) return reduce_copies_on<true, V>(executor, reducer, shape, grid, y, x);
  Wide* parts = executor.scratch<Wide>(shape.x_elements() * grid.chunks);
  if (!parts) return small_workspace;
  Status status = reduce_copies_on<false, V>(executor, reducer, shape, grid, y, parts);
  if (!status.ok()) return status;
  TileShape of_parts{shape.batches, 1, {shape.elements()}, {grid.chunks}};
  TileGrid join(of_parts, 1, sizeof(Wide), false);
  return reduce_copies_on<true, 1>(executor, reducer, of_parts, join, parts, x);
}

}  // namespace internal

template <class T>
Status copy_elements(const Executor& executor, const TileShape& shape, const T* x, T* y) {
  int64_t elements = shape.y_elements();
  if (elements == 0) return {};
  auto launch = [&](auto index) {
    using Index = decltype(index);
    unsigned blocks = unsigned(ceil_div(elements, internal::tile_block * internal::tile_step));
    internal::copy_tile_elements<<<blocks, internal::tile_block, 0, executor.stream>>>(Tiles<Index>(shape), elements, x,
                                                                                       y);
    return launched();
  };
  return elements < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

template <class Reducer>
Status reduce_copies(const Executor& executor, const Reducer& reducer, const TileShape& shape,
                     const typename Reducer::Element* y, typename Reducer::Element* x) {
  constexpr int V = 16 / sizeof(*y);
  if (shape.x_elements() == 0) return {};
  if (shape.copies() == 0) {
    cudaError_t error = cudaMemsetAsync(x, 0, size_t(shape.x_elements()) * sizeof(*x), executor.stream);
    return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
  }
  if (shape.inner() % V == 0) return internal::reduce_copies_by<V>(executor, reducer, shape, y, x);
  return internal::reduce_copies_by<1>(executor, reducer, shape, y, x);
}

}  // namespace baracuda
