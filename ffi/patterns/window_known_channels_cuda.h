// Windows whose sizes and strides along H and W the compiler knows, of channels that are last, on a CUDA grid. To
// reduce, a thread has a window of 16 bytes of channels; to gather, as many elements along H and W as a stride has,
// which share windows. All that it looks at is read before any is used.
#pragma once

#include "window_rows_cuda.h"
#include "window_teams_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int known_channels_block = 128;

template <int V, class Along, class Across, class Reducer>
__global__ void __launch_bounds__(known_channels_block)
    reduce_known_window_channels(Reducer reducer, Windows<int32_t, false> windows, WindowGrid<int32_t> grid,
                                 typename Reducer::Element* y) {
  using T = typename Reducer::Element;
  int thread = blockIdx.x * known_channels_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto [batch, d, row, column, group] = grid.position(thread);
  int channel = group * V, height = windows.in[1], width = windows.in[2];
  int first_row = windows.begin(1, row), first_column = windows.begin(2, column);
  auto is_there = [&](int j, int k) {
    return (unsigned(first_row + j) < unsigned(height)) & (unsigned(first_column + k) < unsigned(width));
  };
  auto window = windows.position(batch, d, row, column, channel);
  typename Reducer::template State<V> state;
  reducer.start(state, window);
  auto depth = windows.span(0, batch, channel, d);
  for (int i = 0; i < depth.count; ++i) {
    int index = ((depth.first + i) * height + first_row) * width + first_column;
    const T* from = reducer.x + windows.x_element(batch, depth.first + i, first_row, first_column, channel);
    Vector<T, V> elements[Along::size][Across::size];
#pragma unroll
    for (int j = 0; j < Along::size; ++j)
#pragma unroll
      for (int k = 0; k < Across::size; ++k)
        if (is_there(j, k)) elements[j][k] = load<V>(from + (j * width + k) * windows.channels);
#pragma unroll
    for (int j = 0; j < Along::size; ++j)
#pragma unroll
      for (int k = 0; k < Across::size; ++k)
        if (is_there(j, k)) reducer.take(state, elements[j][k], index + j * width + k);
  }
  store<V>(y + window.y_element, reducer.finish(state, windows, window, Constant<1>{}));
}

// Along and Across are `WindowSteps`, of R and C elements of x.
template <int R, int C, int V, class Along, class Across, class Gatherer>
__global__ void __launch_bounds__(known_channels_block)
    gather_known_window_channels(Gatherer gatherer, Windows<int32_t, false> windows, WindowGrid<int32_t> grid,
                                 typename Gatherer::Element* dx) {
  using T = typename Gatherer::Element;
  int thread = blockIdx.x * known_channels_block + threadIdx.x;
  if (thread >= grid.threads) return;
  auto [batch, d, tile_row, tile_column, group] = grid.position(thread);
  int row = tile_row * R, column = tile_column * C, channel = group * V;
  int element = windows.x_element(batch, d, row, column, channel), width = windows.in[2];
  int index = (d * windows.in[1] + row) * width + column;
  typename Gatherer::template State<V> states[R][C];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int c = 0; c < C; ++c) gatherer.start(states[r][c], Vector<T, V>{}, index + r * width + c, 0);
  int first_h = Along::first(row + windows.before[1]), first_w = Across::first(column + windows.before[2]);
  auto is_window = [&](int h, int w) {
    return (unsigned(first_h + h) < unsigned(windows.out[1])) & (unsigned(first_w + w) < unsigned(windows.out[2]));
  };
  auto ds = windows.holding(0, batch, channel, d);
  for (int i = ds.first; i < ds.end; ++i) {
    typename Gatherer::template Terms<V> terms[Along::count][Across::count];
#pragma unroll
    for (int h = 0; h < Along::count; ++h)
#pragma unroll
      for (int w = 0; w < Across::count; ++w)
        if (is_window(h, w))
          terms[h][w] =
              gatherer.template stage<V>(windows, windows.position(batch, i, first_h + h, first_w + w, channel));
#pragma unroll
    for (int h = 0; h < Along::count; ++h)
#pragma unroll
      for (int w = 0; w < Across::count; ++w) {
        if (!is_window(h, w)) continue;
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int c = 0; c < C; ++c)
            if (Along::holds(h, r) && Across::holds(w, c)) gatherer.push(states[r][c], terms[h][w]);
      }
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int c = 0; c < C; ++c)
      if (row + r < windows.in[1] && column + c < width)
        store<V>(dx + element + (r * width + c) * windows.channels, gatherer.finish(states[r][c]));
}

// The channels of a thread.
template <class T>
inline constexpr int known_channels = 16 / int(sizeof(T));

template <class T>
bool are_whole_channels(const WindowShape& shape) {
  return shape.channels % known_channels<T> == 0 && !shape.is_general();
}

// Whether the windows are some that are known, whose reduction then was launched. Where windows begin at each row, the
// loop over elements of any window took less time.
template <class Reducer>
bool are_known_channels(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                        typename Reducer::Element* y, Status& status) {
  constexpr int V = known_channels<typename Reducer::Element>;
  if (!are_whole_channels<typename Reducer::Element>(shape)) return false;
  auto are = [&](auto along, auto across) {
    if (!along.is(shape, 1) || !across.is(shape, 2)) return false;
    WindowGrid<int32_t> grid(shape.batches, shape.out, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, known_channels_block));
    reduce_known_window_channels<V, decltype(along), decltype(across)>
        <<<blocks, known_channels_block, 0, executor.stream>>>(reducer, Windows<int32_t, false>(shape), grid, y);
    status = launched();
    return true;
  };
  auto square = [&](auto axis) { return are(axis, axis); };
  return square(KnownSteps<3, 2>{}) || square(KnownSteps<2, 2>{});
}

// The same of gradients.
template <class Gatherer>
bool gather_known_channels(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                           typename Gatherer::Element* dx, Status& status) {
  constexpr int V = known_channels<typename Gatherer::Element>;
  if (!are_whole_channels<typename Gatherer::Element>(shape)) return false;
  auto are = [&](auto along, auto across) {
    constexpr int R = decltype(along)::stride, C = decltype(across)::stride;
    if (!along.is(shape, 1) || !across.is(shape, 2)) return false;
    int64_t tiles[3] = {shape.in[0], ceil_div(shape.in[1], R), ceil_div(shape.in[2], C)};
    WindowGrid<int32_t> grid(shape.batches, tiles, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, known_channels_block));
    gather_known_window_channels<R, C, V, decltype(along), decltype(across)>
        <<<blocks, known_channels_block, 0, executor.stream>>>(gatherer, Windows<int32_t, false>(shape), grid, dx);
    status = launched();
    return true;
  };
  auto square = [&](auto axis) { return are(axis, axis); };
  return square(WindowSteps<3, 2, 2, 1>{}) || square(WindowSteps<3, 2, 2>{}) || square(WindowSteps<2, 2, 2>{});
}

}  // namespace internal
}  // namespace baracuda
