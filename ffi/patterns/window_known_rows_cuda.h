// Windows whose sizes, steps and padding along H and W the compiler knows, on a CUDA grid: a thread has R rows of V
// neighbors of the result. It reads what is under them in 16 bytes a row, and an element on either side that the next
// thread's windows begin or end with. All rows are read before any is used, each once for all of the thread's windows.
#pragma once

#include "window_rows_cuda.h"

namespace baracuda {
namespace internal {

template <int size, int stride, int before_>
struct KnownAxis : KnownSteps<size, stride> {
  static constexpr int before = before_;
  // The elements of V windows that are not among the V * stride in the middle: those before and those after.
  static constexpr int sooner = before, later = size > stride + before ? size - stride - before : 0;
  static bool is(const WindowShape& shape, int axis) {
    return KnownSteps<size, stride>::is(shape, axis) && shape.before[axis] == before;
  }
};

// The elements of a row of x under V windows, and which of those at its ends are there.
template <class Across, class T>
struct KnownRow {
  static constexpr int middle = 16 / int(sizeof(T)), sooner = Across::sooner, later = Across::later;
  struct Ends {
    bool are_there[sooner + later + 1];
  };
  Vector<T, middle> elements;
  T ends[sooner + later + 1];

  // Of a row of x, where the middle begins at `first`.
  static __device__ Ends ends_in(int first, int width) {
    Ends ends{};
#pragma unroll
    for (int k = 0; k < sooner; ++k) ends.are_there[k] = first >= sooner - k;
#pragma unroll
    for (int k = sooner; k < sooner + later; ++k) ends.are_there[k] = first + middle + k - sooner < width;
    return ends;
  }
  __device__ void read(const T* from, const Ends& there) {
    elements = load<middle>(from);
#pragma unroll
    for (int k = 0; k < sooner; ++k)
      if (there.are_there[k]) ends[k] = from[k - sooner];
#pragma unroll
    for (int k = sooner; k < sooner + later; ++k)
      if (there.are_there[k]) ends[k] = from[middle + k - sooner];
  }
  // What window k has of them; the middle's first has `index`.
  template <class Reducer, class State>
  __device__ void take(const Reducer& reducer, State& state, int k, int index, const Ends& there) const {
#pragma unroll
    for (int c = 0; c < Across::size; ++c) {
      int at = k * Across::stride - Across::before + c;
      if (at >= 0 && at < middle) {
        reducer.take(state, {elements.lane[at]}, index + at);
      } else {
        int end = at < 0 ? at + sooner : at - middle + sooner;
        if (there.are_there[end]) reducer.take(state, {ends[end]}, index + at);
      }
    }
  }
};

template <int R, class Along, class Across, class Reducer>
__global__ void __launch_bounds__(window_rows_block)
    reduce_known_window_rows(Reducer reducer, Windows<int32_t, false> windows, WindowRows<false> grid,
                             typename Reducer::Element* y) {
  using T = typename Reducer::Element;
  using Row = KnownRow<Across, T>;
  constexpr int middle = Row::middle, V = middle / Across::stride;
  constexpr int rows = (R - 1) * Along::stride + Along::size;
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto [batch, d, row, column] = grid.position(thread);
  int height = windows.in[1], width = windows.in[2];
  int first_row = row * Along::stride - Along::before, first = column * Across::stride;  // of the middle
  auto ends = Row::ends_in(first, width);
  auto window = [&](int r, int k) { return windows.position(batch, d, row + r, column + k, 0); };
  typename Reducer::template State<1> states[R][V];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int k = 0; k < V; ++k) reducer.start(states[r][k], window(r, k));

  auto depth = windows.span(0, batch, 0, d);
  for (int i = 0; i < depth.count; ++i) {
    Row read[rows];
#pragma unroll
    for (int j = 0; j < rows; ++j)
      if (unsigned(first_row + j) < unsigned(height))
        read[j].read(reducer.x + windows.x_element(batch, depth.first + i, first_row + j, first, 0), ends);
#pragma unroll
    for (int j = 0; j < rows; ++j) {
      if (unsigned(first_row + j) >= unsigned(height)) continue;
      int index = ((depth.first + i) * height + first_row + j) * width + first;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (j < r * Along::stride || j >= r * Along::stride + Along::size) continue;
#pragma unroll
        for (int k = 0; k < V; ++k) read[j].take(reducer, states[r][k], k, index, ends);
      }
    }
  }

  int left = windows.out[2] - column;
  bool is_aligned = windows.out[2] % V == 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (row + r >= windows.out[1]) break;
    int to = windows.y_element(batch, d, row + r, column, 0);
    auto values = reducer.finish_all(states[r], windows, [&](int k) { return window(r, k); });
    store_chunk<V>(y + to, values, left, is_aligned);
    reducer.finish_more(states[r],
                        [&](auto* array, const auto& more) { store_chunk<V>(array + to, more, left, is_aligned); });
  }
}

// Windows of one row: a thread has R chunks of it.
template <int R, class Across, class Reducer>
__global__ void __launch_bounds__(window_rows_block)
    reduce_known_window_slices(Reducer reducer, Windows<int32_t, false> windows, WindowRows<true> grid,
                               typename Reducer::Element* y) {
  using T = typename Reducer::Element;
  using Row = KnownRow<Across, T>;
  constexpr int middle = Row::middle, V = middle / Across::stride;
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto position = grid.position(thread);
  WindowRow slice(windows, position.batch, position.d, position.row);
  int width = windows.in[2], column = position.column;
  Row read[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    int of = column + r * grid.across, first = of * Across::stride;
    if (of < windows.out[2]) read[r].read(reducer.x + slice.x_row + first, Row::ends_in(first, width));
  }
  bool is_aligned = windows.out[2] % V == 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    int of = column + r * grid.across, first = of * Across::stride;
    if (of >= windows.out[2]) break;
    auto window = [&](int k) { return slice.window(windows, of + k); };
    typename Reducer::template State<1> states[V];
#pragma unroll
    for (int k = 0; k < V; ++k) {
      reducer.start(states[k], window(k));
      read[r].take(reducer, states[k], k, slice.index + first, Row::ends_in(first, width));
    }
    int left = windows.out[2] - of;
    store_chunk<V>(y + slice.y_row + of, reducer.finish_all(states, windows, window), left, is_aligned);
    reducer.finish_more(states, [&](auto* array, const auto& more) {
      store_chunk<V>(array + slice.y_row + of, more, left, is_aligned);
    });
  }
}

// Fewer threads than this are given a row each.
inline constexpr int64_t enough_known_threads = 132 * 1024;

// Whether the windows are some that are known, whose reduction then was launched.
template <class Reducer>
bool are_known_windows(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                       typename Reducer::Element* y, Status& status) {
  constexpr int middle = 16 / int(sizeof(typename Reducer::Element));
  // Each thread's middle is in x, and aligned.
  if (shape.is_general() || shape.in[2] % middle != 0) return false;
  auto launch = [&](auto rows, auto along, auto across) {
    constexpr int V = middle / decltype(across)::stride;
    WindowRows<false> grid(shape.batches, shape.out, rows.value, V);
    reduce_known_window_rows<rows.value, decltype(along), decltype(across)>
        <<<grid.blocks(), window_rows_block, 0, executor.stream>>>(reducer, Windows<int32_t, false>(shape), grid, y);
    status = launched();
    return true;
  };
  auto are = [&](auto along, auto across) {
    constexpr int V = middle / decltype(across)::stride;
    if (!along.is(shape, 1) || !across.is(shape, 2)) return false;
    if (ceil_div(shape.out[2], V) * middle > shape.in[2]) return false;
    // Where windows begin at each row, more of them share one.
    using R = Constant<decltype(along)::stride == 1 ? 4 : 2>;
    int64_t threads = shape.batches * shape.out[0] * ceil_div(shape.out[1], R::value) * ceil_div(shape.out[2], V);
    if (threads >= enough_known_threads) return launch(R{}, along, across);
    return launch(Constant<1>{}, along, across);
  };
  auto square = [&](auto axis) { return are(axis, axis); };
  auto slice = [&](auto across) {
    constexpr int V = middle / decltype(across)::stride;
    if (!across.is(shape, 2) || ceil_div(shape.out[2], V) * middle > shape.in[2]) return false;
    constexpr int chunks = Reducer::row_blocks > 0 ? 1 : 2;  // of a thread, which may keep indices
    WindowRows<true> grid(shape.batches, shape.out, chunks, V);
    reduce_known_window_slices<chunks, decltype(across)>
        <<<grid.blocks(), window_rows_block, 0, executor.stream>>>(reducer, Windows<int32_t, false>(shape), grid, y);
    status = launched();
    return true;
  };
  if (WindowRow::are_windows(shape))
    return slice(KnownAxis<3, 2, 1>{}) || slice(KnownAxis<2, 2, 0>{}) || slice(KnownAxis<4, 2, 0>{});
  return square(KnownAxis<3, 2, 1>{}) || square(KnownAxis<3, 2, 0>{}) || square(KnownAxis<2, 2, 0>{}) ||
         square(KnownAxis<3, 1, 1>{});
}

}  // namespace internal
}  // namespace baracuda
