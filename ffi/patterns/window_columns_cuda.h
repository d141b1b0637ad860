// Tall windows of one channel on a CUDA grid. A thread has 16 bytes of a row, and goes down rows: its columns are in
// the same windows until a row begins another one. To reduce, it takes the rows of a window, column by column, and then
// a thread for each window merges its columns, in their order. To gather, it reads a window's gradient once for all
// rows of it.
#pragma once

#include "window_rows_cuda.h"
#include "window_teams_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int window_columns_block = 256, window_columns_rows = 16;

// Whether windows are tall, and not far apart.
inline bool are_tall(const WindowShape& shape) {
  bool is_dense = shape.channels == 1 && shape.out[1] > 0 && !shape.is_listed();
  for (int a = 0; a < 3; ++a) is_dense &= shape.dilation[a] == 1;
  auto apart = [&](int a) { return shape.adaptive[a] ? shape.in[a] / shape.out[a] : shape.stride[a]; };
  return is_dense && apart(1) >= 4 && (shape.adaptive[1] || shape.size[1] >= 4);
}

// The threads of a block in bands: the rows of x under a row of windows, in chunks of V columns.
struct WindowBands {
  Divisor<int32_t> chunks;
  int bands, each;  // of a block

  WindowBands(const WindowShape& shape, int V)
      : chunks(ceil_div(shape.in[2], V)),
        bands(int(shape.batches * shape.out[0] * shape.out[1])),
        each(window_columns_block / chunks.value) {}
  unsigned blocks() const { return unsigned(ceil_div(bands, each)); }
};

template <int V, class Reducer>
__global__ void __launch_bounds__(window_columns_block)
    reduce_window_columns(Reducer reducer, Windows<int32_t, true> windows, WindowBands grid,
                          typename Reducer::Element* y) {
  using T = typename Reducer::Element;
  using State = typename Reducer::template State<1>;
  using Position = WindowPosition<int32_t>;
  constexpr int together = 8;
  __shared__ State states[V][window_columns_block];
  int first_band = blockIdx.x * grid.each, bands = min(grid.each, grid.bands - first_band);
  auto position = [&](int band, int& batch, int& d, int& row) {
    int plane = windows.by_out[1].quotient(band);
    row = band - plane * windows.out[1], batch = windows.by_out[0].quotient(plane), d = plane - batch * windows.out[0];
  };
  int local = grid.chunks.quotient(threadIdx.x), column = (threadIdx.x - local * grid.chunks.value) * V;
  int batch, d, row;
  if (local < bands) {
    position(first_band + local, batch, d, row);
    auto ds = windows.span(0, batch, 0, d), hs = windows.span(1, batch, 0, row);
    State own[V];
#pragma unroll
    for (int k = 0; k < V; ++k) {
      Position top{};
      top.index = (ds.first * windows.in[1] + hs.first) * windows.in[2] + column + k;
      reducer.start(own[k], top);
    }
    for (int i = 0; i < ds.count; ++i) {
      int index = ((ds.first + i) * windows.in[1] + hs.first) * windows.in[2] + column;
      const T* from = reducer.x + windows.x_element(batch, 0, 0, 0, 0) + index;
      for (int j = 0; j < hs.count; j += together) {
        // Some are read before any is used.
        Vector<T, V> read[together];
#pragma unroll
        for (int u = 0; u < together; ++u)
          if (j + u < hs.count) read[u] = load<V>(from + u * windows.in[2]);
#pragma unroll
        for (int u = 0; u < together; ++u)
          if (j + u < hs.count) {
#pragma unroll
            for (int k = 0; k < V; ++k) reducer.take(own[k], {read[u].lane[k]}, index + u * windows.in[2] + k);
          }
        from += together * windows.in[2], index += together * windows.in[2];
      }
    }
#pragma unroll
    for (int k = 0; k < V; ++k) states[k][threadIdx.x] = own[k];
  }
  __syncthreads();
  for (int number = threadIdx.x; number < bands * windows.out[2]; number += window_columns_block) {
    local = windows.by_out[2].quotient(number);
    position(first_band + local, batch, d, row);
    auto window = windows.position(batch, d, row, number - local * windows.out[2], 0);
    State state;
    reducer.start(state, window);
    if (window.extent[0] > 0 && window.extent[1] > 0) {
      int first = windows.span(2, batch, 0, window.at[2]).first, chunk = local * grid.chunks.value;
#pragma unroll 4
      for (int k = 0; k < window.extent[2]; ++k) reducer.merge(state, states[(first + k) % V][chunk + (first + k) / V]);
    }
    store<1>(y + window.y_element, reducer.finish(state, windows, window, Constant<1>{}));
  }
}

// Whether rows of `width` elements are whole 16 bytes.
template <class T>
bool is_whole(int64_t width) {
  return width % (16 / int(sizeof(T))) == 0;
}

// Whether enough threads take columns, and few of these are left to one thread.
template <class Reducer>
bool are_for_columns(const WindowShape& shape) {
  using T = typename Reducer::Element;
  int64_t chunks = is_whole<T>(shape.in[2]) ? shape.in[2] / (16 / int(sizeof(T))) : shape.in[2];
  int64_t across = shape.adaptive[2] ? ceil_div(shape.in[2], shape.out[2]) : shape.size[2];
  return are_tall(shape) && chunks <= window_columns_block && across <= 64 &&
         shape.batches * shape.out[0] * shape.out[1] * chunks >= enough_windows / 2;
}

template <class Reducer>
Status reduce_window_columns(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                             typename Reducer::Element* y) {
  using T = typename Reducer::Element;
  auto launch = [&](auto width) {
    WindowBands grid(shape, width.value);
    reduce_window_columns<width.value>
        <<<grid.blocks(), window_columns_block, 0, executor.stream>>>(reducer, Windows<int32_t, true>(shape), grid, y);
    return launched();
  };
  return is_whole<T>(shape.in[2]) ? launch(Constant<16 / int(sizeof(T))>{}) : launch(Constant<1>{});
}

// Elements of x whose V neighbors are in the same window, or in none.
template <int V, class Gatherer>
__global__ void __launch_bounds__(window_rows_block)
    gather_window_columns(Gatherer gatherer, Windows<int32_t, true> windows, WindowRows<false> grid,
                          typename Gatherer::Element* dx) {
  using T = typename Gatherer::Element;
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto position = grid.position(thread);
  int batch = position.batch, d = position.d;
  auto ds = windows.holding(0, batch, 0, d);
  WindowRange<int32_t> ws[V];
#pragma unroll
  for (int k = 0; k < V; ++k) ws[k] = windows.holding(2, batch, 0, position.column + k);
  typename Gatherer::template Terms<1> terms[V];
  int depth = -1, height = -1;  // the windows of which these are
  auto read = [&](int i, int j) {
    depth = i, height = j;
#pragma unroll
    for (int k = 0; k < V; ++k)
      if (k > 0 && ws[k].first == ws[k > 0 ? k - 1 : 0].first && ws[k].end == ws[k > 0 ? k - 1 : 0].end)
        terms[k] = terms[k > 0 ? k - 1 : 0];
      else if (ws[k].first < ws[k].end)
        terms[k] = gatherer.template stage<1>(windows, windows.position(batch, i, j, ws[k].first, 0));
  };
  grid.for_steps(position, windows.in, [&](int row, int column) {
    int element = windows.x_element(batch, d, row, column, 0);
    int index = (d * windows.in[1] + row) * windows.in[2] + column;
    typename Gatherer::template State<1> state[V];
#pragma unroll
    for (int k = 0; k < V; ++k) gatherer.start(state[k], Vector<T, 1>{}, index + k, 0);
    auto hs = windows.holding(1, batch, 0, row);
    for (int i = ds.first; i < ds.end; ++i)
      for (int j = hs.first; j < hs.end; ++j) {
        if (i != depth || j != height) read(i, j);
#pragma unroll
        for (int k = 0; k < V; ++k)
          if (ws[k].first < ws[k].end)
            gatherer.push(state[k], terms[k], windows, element + k, Constant<1>{}, WindowPosition<int32_t>{});
      }
    Vector<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = gatherer.finish(state[k]).lane[0];
    store<V>(dx + element, out);
  });
}

// A plane that is one window, in rows.
template <class T>
WindowShape in_rows(WindowShape shape) {
  constexpr int V = 16 / sizeof(T);
  int64_t plane = shape.in[2];
  bool is_one = shape.channels == 1 && !shape.is_general() && shape.in[0] == 1 && shape.in[1] == 1 &&
                shape.out[2] == 1 && shape.size[2] == plane && shape.before[2] + shape.after[2] == 0;
  for (int rows = window_columns_rows; is_one && rows >= 4; rows /= 2)
    if (plane % (rows * V) == 0) {
      shape.in[1] = shape.size[1] = shape.stride[1] = rows;
      shape.in[2] = shape.size[2] = shape.stride[2] = plane / rows;
      break;
    }
  return shape;
}

// Whether windows are tall, in whole 16 bytes next to each other, and enough threads take their columns, so that their
// gradients then are computed.
template <class Gatherer>
bool are_tall_windows(const Executor& executor, const Gatherer& gatherer, const WindowShape& given,
                      typename Gatherer::Element* dx, Status& status) {
  using T = typename Gatherer::Element;
  constexpr int V = 16 / sizeof(T);
  WindowShape shape = in_rows<T>(given);
  if (!are_tall(shape) || shape.adaptive[2] || !is_whole<T>(shape.in[2])) return false;
  if (shape.stride[2] != shape.size[2] || shape.stride[2] % V != 0 || shape.before[2] % V != 0) return false;
  WindowRows<false> grid(shape.batches, shape.in, window_columns_rows, V);
  if (grid.threads < enough_windows / 2) return false;
  gather_window_columns<V>
      <<<grid.blocks(), window_rows_block, 0, executor.stream>>>(gatherer, Windows<int32_t, true>(shape), grid, dx);
  status = launched();
  return true;
}

}  // namespace internal
}  // namespace baracuda
