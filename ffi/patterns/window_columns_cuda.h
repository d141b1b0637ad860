// Tall windows of one channel on a CUDA grid. A thread has 16 bytes of a row, and goes down rows: its columns are in
// the same windows until a row begins another one. To reduce, it takes the rows of a window, column by column, and then
// a thread for each window merges its columns, in their order. To gather, it reads the gradients of the windows that
// hold a row, up to two along D and along W, once for all rows of these; where planes are one row, once for each chunk.
#pragma once

#include "window_slices_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int window_columns_block = 256, window_columns_rows = 16;

// Whether the elements of a window follow each other in rows.
inline bool are_dense(const WindowShape& shape) {
  bool is_dense = shape.channels == 1 && !shape.is_listed();
  for (int a = 0; a < 3; ++a) is_dense &= shape.dilation[a] == 1 && shape.out[a] > 0;
  return is_dense;
}
// And whether windows are tall, and not far apart.
inline bool are_tall(const WindowShape& shape) {
  auto apart = [&](int a) { return shape.adaptive[a] ? shape.in[a] / shape.out[a] : shape.stride[a]; };
  return are_dense(shape) && apart(1) >= 4 && (shape.adaptive[1] || shape.size[1] >= 4);
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
  // Bands whose planes overlap follow each other: what one has read is in the first-level cache for the next.
  auto position = [&](int band, int& batch, int& d, int& row) {
    int rows = windows.by_out[0].quotient(band);
    d = band - rows * windows.out[0], batch = windows.by_out[1].quotient(rows), row = rows - batch * windows.out[1];
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

// Elements of x in chunks of V, each of which is in `depths` windows along D at most, in `across` along W, or in none.
// Windows that are not next to each other along W hold all of a chunk, or nothing of it.
template <int V, int depths, int across, bool is_slice, class Gatherer>
__global__ void __launch_bounds__(window_rows_block)
    gather_window_columns(Gatherer gatherer, Windows<int32_t, true> windows, WindowRows<is_slice> grid,
                          typename Gatherer::Element* dx) {
  using T = typename Gatherer::Element;
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto position = grid.position(thread);
  int batch = position.batch, d = position.d;
  bool is_aligned = windows.in[2] % V == 0;
  auto ds = windows.holding(0, batch, 0, d);
  WindowSpan<int32_t> spans[across];  // counted from the chunk's first element
  int first = 0, windows_across = 0;
  auto look_across = [&](int column) {
    first = windows.holding(2, batch, 0, column).first;
    int last = min(column + V, windows.in[2]) - 1;
    windows_across =
        (across == 1 ? windows.holding(2, batch, 0, column) : windows.holding(2, batch, 0, last)).end - first;
#pragma unroll
    for (int w = 0; w < across; ++w)
      if (w < windows_across) {
        spans[w] = windows.span(2, batch, 0, first + w);
        spans[w].first -= column;
      } else {
        spans[w] = {0, 0};
      }
  };
  typename Gatherer::template Terms<1> terms[depths][across];
  int height = -1;  // the windows of which these are
  auto read = [&](int j) {
    height = j;
#pragma unroll
    for (int i = 0; i < depths; ++i)
#pragma unroll
      for (int w = 0; w < across; ++w)
        if (ds.first + i < ds.end && w < windows_across)
          terms[i][w] = gatherer.template stage<1>(windows, windows.position(batch, ds.first + i, j, first + w, 0));
  };
  if constexpr (!is_slice) look_across(position.column);
  grid.for_steps(position, windows.in, [&](int row, int column) {
    if constexpr (is_slice) look_across(column), height = -1;
    int element = windows.x_element(batch, d, row, column, 0);
    int index = (d * windows.in[1] + row) * windows.in[2] + column;
    typename Gatherer::template State<1> state[V];
#pragma unroll
    for (int k = 0; k < V; ++k) gatherer.start(state[k], Vector<T, 1>{}, index + k, 0);
    auto hs = windows.holding(1, batch, 0, row);
    for (int j = hs.first; j < hs.end; ++j) {
      if (j != height) read(j);
#pragma unroll
      for (int i = 0; i < depths; ++i) {
        if (ds.first + i >= ds.end) continue;
#pragma unroll
        for (int w = 0; w < across; ++w) {
          if (w >= windows_across) continue;
#pragma unroll
          for (int k = 0; k < V; ++k)
            if (across == 1 || unsigned(k - spans[w].first) < unsigned(spans[w].count))
              gatherer.push(state[k], terms[i][w], windows, element + k, Constant<1>{}, WindowPosition<int32_t>{});
        }
      }
    }
    Vector<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = gatherer.finish(state[k]).lane[0];
    store_chunk<V>(dx + element, out, windows.in[2] - column, is_aligned);
  });
}

// Windows of one row that follow each other without gaps, in rows.
template <class T>
WindowShape in_rows(WindowShape shape) {
  constexpr int V = 16 / sizeof(T);
  int64_t size = shape.size[2], windows = shape.out[2];
  bool follow = are_slices(shape) && !shape.is_general() && shape.stride[2] == size && shape.in[2] == windows * size &&
                shape.before[2] + shape.after[2] == 0;
  for (int rows = window_columns_rows; follow && rows >= 4; rows /= 2)
    // Neighboring threads store neighbors.
    if (size % (rows * V) == 0 && (windows == 1 || size >= rows * V * 8)) {
      shape.in[0] = shape.out[0] = windows, shape.size[0] = shape.stride[0] = 1;
      shape.in[1] = shape.size[1] = shape.stride[1] = rows;
      shape.in[2] = shape.size[2] = shape.stride[2] = size / rows;
      shape.out[2] = 1;
      break;
    }
  return shape;
}

// The most windows along an axis that some of `count` neighbors are in.
inline int64_t windows_over(const WindowShape& shape, int axis, int64_t count) {
  if (shape.adaptive[axis]) return ceil_div(count * shape.out[axis], shape.in[axis]) + 1;
  return (count + shape.size[axis] - 2) / shape.stride[axis] + 1;
}

// Whether windows are tall, or long, and few hold an element, and enough threads take their columns, so that their
// gradients then are computed.
template <class Gatherer>
bool are_tall_windows(const Executor& executor, const Gatherer& gatherer, const WindowShape& given,
                      typename Gatherer::Element* dx, Status& status) {
  using T = typename Gatherer::Element;
  constexpr int V = 16 / sizeof(T);
  WindowShape shape = in_rows<T>(given);
  // Of rows that are not whole 16 bytes, and of short slices, threads would wait for each other.
  bool is_slice = are_slices(shape) && shape.in[2] >= 1024 && is_whole<T>(shape.in[2]);
  if (!(are_tall(shape) || (is_slice && are_dense(shape))) || windows_over(shape, 0, 1) > 2 ||
      windows_over(shape, 1, 1) > 2 || (V > 4 && !is_whole<T>(shape.in[2])))
    return false;
  bool is_one = !shape.adaptive[2] && shape.stride[2] == shape.size[2] && shape.stride[2] % V == 0 &&
                shape.before[2] % V == 0 && is_whole<T>(shape.in[2]);
  if (!is_one && windows_over(shape, 2, V) > 2) return false;
  auto launch = [&](auto depths, auto across, auto slice) {
    WindowRows<slice.value> grid(shape.batches, shape.in, slice.value ? 4 : window_columns_rows, V);
    if (grid.threads < (is_one ? enough_windows / 2 : enough_windows)) return false;
    gather_window_columns<V, depths.value, across.value, slice.value>
        <<<grid.blocks(), window_rows_block, 0, executor.stream>>>(gatherer, Windows<int32_t, true>(shape), grid, dx);
    status = launched();
    return true;
  };
  using One = Constant<1>;
  using Two = Constant<2>;
  if (is_slice) return launch(One{}, Two{}, std::true_type{});
  if (windows_over(shape, 0, 1) == 1)
    return is_one ? launch(One{}, One{}, std::false_type{}) : launch(One{}, Two{}, std::false_type{});
  return is_one ? launch(Two{}, One{}, std::false_type{}) : launch(Two{}, Two{}, std::false_type{});
}

}  // namespace internal
}  // namespace baracuda
