// The window pattern on a CUDA grid for one channel, where neighbors along W are next to each other in memory: a
// thread goes down some rows of the result. Usual sizes and strides along W are known to the compiler, since the
// arithmetic of positions would otherwise cost more than the reading.
#pragma once

#include "window.h"

namespace baracuda {
namespace internal {

inline constexpr int window_rows_block = 128, window_rows_each = 4;

// A thread for `steps` positions in the planes of an array [B, D, H, W], which are its B * D: chunks of rows, one below
// the other, or, along slices, in one row and as far apart as `across` says.
template <bool is_slice>
struct WindowRows {
  Divisor<int32_t> chunks, groups, depth;
  int steps, chunk, across, threads;

  WindowRows(int64_t batches, const int64_t* extents, int steps, int chunk)
      : chunks(ceil_div(extents[2], is_slice ? chunk * steps : chunk)),
        groups(is_slice ? extents[1] : ceil_div(extents[1], steps)),
        depth(extents[0]),
        steps(steps),
        chunk(chunk),
        across(chunks.value * chunk),
        threads(int(batches * extents[0] * groups.value * chunks.value)) {}
  unsigned blocks() const { return unsigned(ceil_div(threads, window_rows_block)); }

  struct Position {
    int batch, d, row, column;
  };
  __device__ Position position(int thread) const {
    int slice = chunks.quotient(thread), plane = groups.quotient(slice), batch = depth.quotient(plane);
    return {batch, plane - batch * depth.value, (slice - plane * groups.value) * (is_slice ? 1 : steps),
            (thread - slice * chunks.value) * chunk};
  }
  // body(row, column) for the thread's positions.
  template <class Body>
  __device__ void for_steps(const Position& position, const int* extents, const Body& body) const {
    if constexpr (is_slice) {
      int column = position.column;
      body(position.row, column);
      while (across < extents[2] - column) body(position.row, column += across);  // the sum does not overflow
    } else {
      int end = min(position.row + steps, extents[1]);
      for (int row = position.row; row < end; ++row) body(row, position.column);
    }
  }
};

// V elements of a row, `left` of which are there; a row of whole vectors has them aligned.
template <int V, class T>
__device__ Vector<T, V> load_chunk(const T* from, int left, bool is_aligned) {
  if (is_aligned) return load<V>(from);
  Vector<T, V> values{};
#pragma unroll
  for (int k = 0; k < V; ++k)
    if (k < left) values.lane[k] = from[k];
  return values;
}
template <int V, class T>
__device__ void store_chunk(T* to, const Vector<T, V>& values, int left, bool is_aligned) {
  if (is_aligned) return store<V>(to, values);
#pragma unroll
  for (int k = 0; k < V; ++k)
    if (k < left) to[k] = values.lane[k];
}

// The extents of windows along H and W; 0 if they are only known at run time. Those that are cut off have others.
template <int rows_, int columns_>
struct WindowExtent {
  static constexpr int rows = rows_, columns = columns_;
};

// A reducer says how many blocks should be on a multiprocessor at once, 0 for as many as the compiler likes.
template <class Extent, bool general, class Reducer>
__global__ void __launch_bounds__(window_rows_block, Reducer::row_blocks)
    reduce_window_rows(Reducer reducer, Windows<int32_t, general> windows, WindowRows<Extent::rows == 1> grid,
                       typename Reducer::Element* y) {
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto position = grid.position(thread);
  int batch = position.batch, d = position.d;
  auto depth = windows.span(0, batch, 0, d);
  grid.for_steps(position, windows.out, [&](int row, int column) {
    int to = windows.y_element(batch, d, row, column, 0);
    if constexpr (Extent::columns > 0 && !general) {
      int from_h = windows.begin(1, row), from_w = windows.begin(2, column);
      if (from_h >= 0 && from_w >= 0 && from_h + Extent::rows <= windows.in[1] &&
          from_w + Extent::columns <= windows.in[2]) {
        typename Reducer::template State<1> state;
        int index = (depth.first * windows.in[1] + from_h) * windows.in[2] + from_w;
        WindowPosition<int32_t> window{to,
                                       windows.x_element(batch, depth.first, from_h, from_w, 0),
                                       index,
                                       {d, row, column},
                                       {depth.count, Extent::rows, Extent::columns}};
        reducer.start(state, window);
        for (int i = 0; i < depth.count; ++i) {
          int offset = i * windows.in[1] * windows.in[2];
          // All are read before any is used.
          typename Reducer::template Elements<1> elements[Extent::rows][Extent::columns];
#pragma unroll
          for (int j = 0; j < Extent::rows; ++j)
#pragma unroll
            for (int k = 0; k < Extent::columns; ++k) {
              int from = offset + j * windows.in[2] + k;
              elements[j][k] = reducer.template stage<1>(window.first + from, Constant<1>{}, index + from);
            }
#pragma unroll
          for (int j = 0; j < Extent::rows; ++j)
#pragma unroll
            for (int k = 0; k < Extent::columns; ++k) reducer.push(state, elements[j][k]);
        }
        return store<1>(y + to, reducer.finish(state, windows, window, Constant<1>{}));
      }
    }
    store<1>(y + to, windows.template reduce<1>(reducer, batch, d, row, column, 0, Constant<1>{}));
  });
}

// Elements of x in chunks of V, by windows of any kind.
template <int V, bool general, class Gatherer>
__global__ void __launch_bounds__(window_rows_block)
    gather_window_rows(Gatherer gatherer, Windows<int32_t, general> windows, WindowRows<false> grid,
                       typename Gatherer::Element* dx) {
  using T = typename Gatherer::Element;
  using Range = WindowRange<int32_t>;
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto position = grid.position(thread);
  int batch = position.batch, d = position.d;
  bool is_aligned = windows.in[2] % V == 0;
  Range ds = windows.holding(0, batch, 0, d);
  grid.for_steps(position, windows.in, [&](int row, int column) {
    int element = windows.x_element(batch, d, row, column, 0), left = windows.in[2] - column;
    int index = (d * windows.in[1] + row) * windows.in[2] + column;
    Vector<T, V> x{};
    if constexpr (Gatherer::reads_x) x = load_chunk<V>(gatherer.x + element, left, is_aligned);
    typename Gatherer::template State<1> state[V];
#pragma unroll
    for (int k = 0; k < V; ++k) gatherer.start(state[k], Vector<T, 1>{x.lane[k]}, index + k, 0);
    Range hs = windows.holding(1, batch, 0, row);
    int last = min(column + V, windows.in[2]) - 1;
    Range ws{windows.holding(2, batch, 0, column).first, windows.holding(2, batch, 0, last).end};
    for (int i = ds.first; i < ds.end; ++i) {
      if (!windows.holds(0, i, d)) continue;
      for (int j = hs.first; j < hs.end; ++j) {
        if (!windows.holds(1, j, row)) continue;
        for (int w = ws.first; w < ws.end; ++w) {
          auto window = windows.position(batch, i, j, w, 0);
          auto term = gatherer.template stage<1>(windows, window);
          auto span = windows.span(2, batch, 0, w);
          int offset = column - span.first, reach = span.count * windows.apart(2);
#pragma unroll
          for (int k = 0; k < V; ++k)
            if (unsigned(offset + k) < unsigned(reach) && windows.holds(2, w, column + k))
              gatherer.push(state[k], term, windows, element + k, Constant<1>{}, window);
        }
      }
    }
    Vector<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = gatherer.finish(state[k]).lane[0];
    store_chunk<V>(dx + element, out, left, is_aligned);
  });
}

// A window's size and stride along an axis.
template <int size_, int stride_>
struct KnownSteps {
  static constexpr int size = size_, stride = stride_;
  static bool is(const WindowShape& shape, int axis) {
    return shape.size[axis] == size && shape.stride[axis] == stride;
  }
};

// And the windows that hold some of `elements` elements, the first of which is `phase` elements beyond a multiple of
// the stride in the padded axis: `before` that many strides begin before it, and so on.
template <int size, int stride, int elements, int phase_ = 0>
struct WindowSteps : KnownSteps<size, stride> {
  static_assert(elements % stride == 0 && phase_ < stride && phase_ < size);
  static constexpr int phase = phase_;
  static constexpr int before = (size - 1 - phase) / stride, count = before + (phase + elements - 1) / stride + 1;
  static __device__ int first(int padded) { return padded / stride - before; }
  static constexpr __host__ __device__ bool holds(int window, int element) {
    return unsigned(phase + element + (before - window) * stride) < unsigned(size);
  }
  static bool is(const WindowShape& shape, int axis) {
    return KnownSteps<size, stride>::is(shape, axis) && shape.before[axis] % stride == phase;
  }
};

// The same for windows that the compiler knows along H and W: a thread has R rows of V elements at once, and each of
// the windows is read once for all of them.
template <int R, int V, class Along, class Across, class Gatherer>
__global__ void __launch_bounds__(window_rows_block)
    gather_known_window_rows(Gatherer gatherer, Windows<int32_t, false> windows, WindowRows<false> grid,
                             typename Gatherer::Element* dx) {
  using T = typename Gatherer::Element;
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto [batch, d, row, column] = grid.position(thread);
  bool is_aligned = windows.in[2] % V == 0;
  int element = windows.x_element(batch, d, row, column, 0), left = windows.in[2] - column;
  int index = (d * windows.in[1] + row) * windows.in[2] + column;
  typename Gatherer::template State<1> state[R][V];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    Vector<T, V> x{};
    if constexpr (Gatherer::reads_x) {
      int there = min(r, windows.in[1] - 1 - row);
      x = load_chunk<V>(gatherer.x + element + there * windows.in[2], left, is_aligned);
    }
#pragma unroll
    for (int k = 0; k < V; ++k) gatherer.start(state[r][k], Vector<T, 1>{x.lane[k]}, index + r * windows.in[2] + k, 0);
  }
  int first_h = Along::first(row + windows.before[1]), first_w = Across::first(column + windows.before[2]);
  auto ds = windows.holding(0, batch, 0, d);
  for (int i = ds.first; i < ds.end; ++i)
#pragma unroll
    for (int h = 0; h < Along::count; ++h) {
      if (unsigned(first_h + h) >= unsigned(windows.out[1])) continue;
      typename Gatherer::template Terms<1> terms[Across::count];
      auto in_range = [&](int w) { return unsigned(first_w + w) < unsigned(windows.out[2]); };
      auto window = [&](int w) { return windows.position(batch, i, first_h + h, first_w + w, 0); };
#pragma unroll
      for (int w = 0; w < Across::count; ++w)
        if (in_range(w)) terms[w] = gatherer.template stage<1>(windows, window(w));
#pragma unroll
      for (int w = 0; w < Across::count; ++w) {
        if (!in_range(w)) continue;
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int k = 0; k < V; ++k)
            if (Along::holds(h, r) && Across::holds(w, k))
              gatherer.push(state[r][k], terms[w], windows, element + r * windows.in[2] + k, Constant<1>{}, window(w));
      }
    }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (row + r >= windows.in[1]) break;
    Vector<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = gatherer.finish(state[r][k]).lane[0];
    store_chunk<V>(dx + element + r * windows.in[2], out, left, is_aligned);
  }
}

// Windows of one row, of which each row of x has as many: a window of a row of y.
struct WindowRow {
  int d, row, index, x_row, y_row;

  template <class Windows>
  __device__ WindowRow(const Windows& windows, int batch, int d, int row)
      : d(d),
        row(row),
        index((d * windows.in[1] + row) * windows.in[2]),
        x_row(windows.x_element(batch, d, row, 0, 0)),
        y_row(windows.y_element(batch, d, row, 0, 0)) {}
  static bool are_windows(const WindowShape& shape) {
    auto is_one = [&](int a) {
      return shape.in[a] == shape.out[a] && KnownSteps<1, 1>::is(shape, a) && shape.before[a] == 0;
    };
    return is_one(0) && is_one(1);
  }
  template <class Windows>
  __device__ WindowPosition<int32_t> window(const Windows& windows, int w) const {
    auto span = windows.span(2, 0, 0, w);
    return {y_row + w, x_row + span.first, index + span.first, {d, row, w}, {1, 1, span.count}};
  }
};

// Elements of x in such rows, in chunks of V.
template <int V, class Across, class Gatherer>
__global__ void __launch_bounds__(window_rows_block)
    gather_known_window_slices(Gatherer gatherer, Windows<int32_t, false> windows, WindowRows<true> grid,
                               typename Gatherer::Element* dx) {
  using T = typename Gatherer::Element;
  int thread = blockIdx.x * window_rows_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto position = grid.position(thread);
  WindowRow slice(windows, position.batch, position.d, position.row);
  bool is_aligned = windows.in[2] % V == 0;
  grid.for_steps(position, windows.in, [&](int, int column) {
    int element = slice.x_row + column, left = windows.in[2] - column;
    Vector<T, V> x{};
    if constexpr (Gatherer::reads_x) x = load_chunk<V>(gatherer.x + element, left, is_aligned);
    typename Gatherer::template State<1> state[V];
#pragma unroll
    for (int k = 0; k < V; ++k) gatherer.start(state[k], Vector<T, 1>{x.lane[k]}, slice.index + column + k, 0);
    int first = Across::first(column + windows.before[2]);
    auto is_there = [&](int w) { return unsigned(first + w) < unsigned(windows.out[2]); };
    auto window = [&](int w) { return slice.window(windows, first + w); };
    typename Gatherer::template Terms<1> terms[Across::count];
    gatherer.stage_all(terms, windows, window, is_there);
#pragma unroll
    for (int w = 0; w < Across::count; ++w) {
      if (!is_there(w)) continue;
#pragma unroll
      for (int k = 0; k < V; ++k)
        if (Across::holds(w, k)) gatherer.push(state[k], terms[w], windows, element + k, Constant<1>{}, window(w));
    }
    Vector<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = gatherer.finish(state[k]).lane[0];
    store_chunk<V>(dx + element, out, left, is_aligned);
  });
}

template <class Reducer>
Status reduce_window_rows(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                          typename Reducer::Element* y) {
  auto launch = [&](auto extent, auto general) {
    WindowRows<decltype(extent)::rows == 1> grid(shape.batches, shape.out, window_rows_each, 1);
    reduce_window_rows<decltype(extent)><<<grid.blocks(), window_rows_block, 0, executor.stream>>>(
        reducer, Windows<int32_t, decltype(general)::value>(shape), grid, y);
    return launched();
  };
  if constexpr (Reducer::general)
    if (shape.is_general()) return launch(WindowExtent<0, 0>{}, std::true_type{});
  auto is = [&](int64_t rows, int64_t columns) { return shape.size[1] == rows && shape.size[2] == columns; };
  std::false_type strided;
  if (is(1, 2)) return launch(WindowExtent<1, 2>{}, strided);
  if (is(1, 3)) return launch(WindowExtent<1, 3>{}, strided);
  if (is(1, 4)) return launch(WindowExtent<1, 4>{}, strided);
  if (is(2, 2)) return launch(WindowExtent<2, 2>{}, strided);
  if (is(3, 3)) return launch(WindowExtent<3, 3>{}, strided);
  return launch(WindowExtent<0, 0>{}, strided);
}

template <class Gatherer>
Status gather_window_rows(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                          typename Gatherer::Element* dx) {
  constexpr int lanes = 16 / sizeof(typename Gatherer::Element), V = lanes < 4 ? lanes : 4;
  auto any = [&](auto general) {
    WindowRows<false> grid(shape.batches, shape.in, window_rows_each, V);
    gather_window_rows<V><<<grid.blocks(), window_rows_block, 0, executor.stream>>>(
        gatherer, Windows<int32_t, decltype(general)::value>(shape), grid, dx);
    return launched();
  };
  if constexpr (Gatherer::general)
    if (shape.is_general()) return any(std::true_type{});
  if constexpr (Gatherer::is_quick) {
    Status status;
    // Whether the windows are these, whose gradients then are computed.
    auto are = [&](auto rows, auto along, auto across) {
      if (!along.is(shape, 1) || !across.is(shape, 2)) return false;
      WindowRows<false> grid(shape.batches, shape.in, rows.value, V);
      gather_known_window_rows<rows.value, V, decltype(along), decltype(across)>
          <<<grid.blocks(), window_rows_block, 0, executor.stream>>>(gatherer, Windows<int32_t, false>(shape), grid,
                                                                     dx);
      status = launched();
      return true;
    };
    auto are_in_rows = [&](auto across) {
      if (!WindowRow::are_windows(shape) || !across.is(shape, 2)) return false;
      WindowRows<true> grid(shape.batches, shape.in, 2, lanes);
      gather_known_window_slices<lanes, decltype(across)><<<grid.blocks(), window_rows_block, 0, executor.stream>>>(
          gatherer, Windows<int32_t, false>(shape), grid, dx);
      status = launched();
      return true;
    };
    using R = Constant<window_rows_each>;
    if (are(R{}, WindowSteps<2, 2, R::value>{}, WindowSteps<2, 2, V>{})) return status;
    if (are(R{}, WindowSteps<3, 2, R::value>{}, WindowSteps<3, 2, V>{})) return status;
    if (are(R{}, WindowSteps<3, 1, R::value>{}, WindowSteps<3, 1, V>{})) return status;
    if (are_in_rows(WindowSteps<2, 2, lanes>{})) return status;
    if (are_in_rows(WindowSteps<3, 2, lanes>{})) return status;
    if (are_in_rows(WindowSteps<4, 2, lanes>{})) return status;
    if constexpr (Gatherer::general) {  // padded
      if (are(R{}, WindowSteps<3, 2, R::value, 1>{}, WindowSteps<3, 2, V, 1>{})) return status;
      if (are_in_rows(WindowSteps<3, 2, lanes, 1>{})) return status;
    }
  }
  return any(std::false_type{});
}

}  // namespace internal
}  // namespace baracuda
