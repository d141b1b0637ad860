// The window pattern on a CUDA grid: down rows where there is one channel, otherwise a thread for each V neighbouring
// channels of a cell of y, or of x, in the order of memory.
#pragma once

#include "window_rows_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int window_block = 256;

// A thread's place in an array [batches, D, H, W, channels / V].
template <class Index>
struct WindowGrid {
  int64_t threads;
  Divisor<Index> d, h, w, groups;

  WindowGrid(int64_t batches, const int64_t* extents, int64_t groups)
      : threads(batches * extents[0] * extents[1] * extents[2] * groups),
        d(extents[0]),
        h(extents[1]),
        w(extents[2]),
        groups(groups) {}
  struct Place {
    Index batch, d, h, w, group;
  };
  static __device__ Index split(const Divisor<Index>& extent, Index& index) {
    Index quotient = extent.quotient(index), rest = index - quotient * extent.value;
    index = quotient;
    return rest;
  }
  __device__ Place place(Index index) const {
    Place place;
    place.group = split(groups, index);
    place.w = split(w, index);
    place.h = split(h, index);
    place.d = split(d, index);
    place.batch = index;
    return place;
  }
};

template <int V, class Index, class Reducer>
__global__ void __launch_bounds__(window_block)
    reduce_window_cells(Reducer reducer, Windows<Index> windows, WindowGrid<Index> grid, typename Reducer::Element* y) {
  int64_t index = int64_t(blockIdx.x) * window_block + threadIdx.x;
  if (index >= grid.threads) return;
  auto [batch, d, h, w, group] = grid.place(Index(index));
  store<V>(y + index * V, windows.template reduce<V>(reducer, batch, d, h, w, Index(group * V), Constant<1>{}));
}

template <int V, class Index, class Gatherer>
__global__ void __launch_bounds__(window_block)
    gather_window_cells(Gatherer gatherer, Windows<Index> windows, WindowGrid<Index> grid,
                        typename Gatherer::Element* dx) {
  int64_t index = int64_t(blockIdx.x) * window_block + threadIdx.x;
  if (index >= grid.threads) return;
  auto [batch, d, h, w, group] = grid.place(Index(index));
  store<V>(dx + index * V,
           windows.template gather<V>(gatherer, batch, Index(group * V), Index(index * V), windows.holding(0, d),
                                      windows.holding(1, h), windows.holding(2, w), Constant<1>{}));
}

// Whether 32 bits reach every cell.
inline bool is_in_reach(const WindowShape& shape) {
  constexpr int64_t reach = (int64_t(1) << 31) - (1 << 16);
  return shape.x_cells() < reach && shape.y_cells() < reach;
}

// body(Constant<V>, Index): V channels where they are aligned, 32 bits where they reach every cell.
template <class T, class Body>
Status for_window_grid(const WindowShape& shape, const Body& body) {
  constexpr int V = 16 / sizeof(T) < 4 ? 16 / sizeof(T) : 4;
  if (!is_in_reach(shape)) return body(Constant<1>{}, int64_t(0));
  if (shape.channels % V == 0) return body(Constant<V>{}, int32_t(0));
  return body(Constant<1>{}, int32_t(0));
}

}  // namespace internal

template <class Reducer>
Status reduce_windows(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                      typename Reducer::Element* y) {
  using namespace internal;
  if (shape.y_cells() == 0) return {};
  if (shape.channels == 1 && is_in_reach(shape)) return reduce_window_rows(executor, reducer, shape, y);
  return for_window_grid<typename Reducer::Element>(shape, [&](auto width, auto index) {
    constexpr int V = decltype(width)::value;
    using Index = decltype(index);
    WindowGrid<Index> grid(shape.batches, shape.out, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, window_block));
    reduce_window_cells<V><<<blocks, window_block, 0, executor.stream>>>(reducer, Windows<Index>(shape), grid, y);
    return launched();
  });
}

template <class Gatherer>
Status gather_windows(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                      typename Gatherer::Element* dx) {
  using namespace internal;
  if (shape.x_cells() == 0) return {};
  if (shape.channels == 1 && is_in_reach(shape)) return gather_window_rows(executor, gatherer, shape, dx);
  return for_window_grid<typename Gatherer::Element>(shape, [&](auto width, auto index) {
    constexpr int V = decltype(width)::value;
    using Index = decltype(index);
    WindowGrid<Index> grid(shape.batches, shape.in, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, window_block));
    gather_window_cells<V><<<blocks, window_block, 0, executor.stream>>>(gatherer, Windows<Index>(shape), grid, dx);
    return launched();
  });
}

}  // namespace baracuda
