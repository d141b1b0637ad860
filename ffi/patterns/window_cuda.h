// The window pattern on a CUDA grid: down rows where there is one channel, otherwise a thread for each V neighboring
// channels of an element of y, or of x, in the order of memory.
#pragma once

#include "window_rows_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int window_block = 256;

// A thread's position in an array [batches, D, H, W, channels / V].
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
  struct Position {
    Index batch, d, h, w, group;
  };
  static __device__ Index split(const Divisor<Index>& extent, Index& index) {
    Index quotient = extent.quotient(index), rest = index - quotient * extent.value;
    index = quotient;
    return rest;
  }
  __device__ Position position(Index index) const {
    Position position;
    position.group = split(groups, index);
    position.w = split(w, index);
    position.h = split(h, index);
    position.d = split(d, index);
    position.batch = index;
    return position;
  }
};

template <int V, class Index, class Reducer>
__global__ void __launch_bounds__(window_block)
    reduce_window_elements(Reducer reducer, Windows<Index> windows, WindowGrid<Index> grid,
                           typename Reducer::Element* y) {
  int64_t index = int64_t(blockIdx.x) * window_block + threadIdx.x;
  if (index >= grid.threads) return;
  auto [batch, d, h, w, group] = grid.position(Index(index));
  store<V>(y + index * V, windows.template reduce<V>(reducer, batch, d, h, w, Index(group * V), Constant<1>{}));
}

template <int V, class Index, class Gatherer>
__global__ void __launch_bounds__(window_block)
    gather_window_elements(Gatherer gatherer, Windows<Index> windows, WindowGrid<Index> grid,
                           typename Gatherer::Element* dx) {
  int64_t index = int64_t(blockIdx.x) * window_block + threadIdx.x;
  if (index >= grid.threads) return;
  auto [batch, d, h, w, group] = grid.position(Index(index));
  store<V>(dx + index * V,
           windows.template gather<V>(gatherer, batch, Index(group * V), Index(index * V), windows.holding(0, d),
                                      windows.holding(1, h), windows.holding(2, w), Constant<1>{}));
}

// Fewer elements than this 32 bits reach, and a step beyond.
inline constexpr int64_t window_reach = (int64_t(1) << 31) - (1 << 16);

inline bool is_in_reach(const WindowShape& shape) {
  return shape.x_elements() < window_reach && shape.y_elements() < window_reach;
}

// body(Constant<V>, Index): V channels where they are aligned, 32 bits where they reach every element.
template <class T, class Body>
Status for_window_grid(const WindowShape& shape, const Body& body) {
  constexpr int V = 16 / sizeof(T) < 4 ? 16 / sizeof(T) : 4;
  if (!is_in_reach(shape)) return body(Constant<1>{}, int64_t(0));
  if (shape.channels % V == 0) return body(Constant<V>{}, int32_t(0));
  return body(Constant<1>{}, int32_t(0));
}

template <class Reducer>
Status reduce_windows_of(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                         typename Reducer::Element* y) {
  if (shape.channels == 1 && is_in_reach(shape)) return reduce_window_rows(executor, reducer, shape, y);
  return for_window_grid<typename Reducer::Element>(shape, [&](auto width, auto index) {
    constexpr int V = decltype(width)::value;
    using Index = decltype(index);
    WindowGrid<Index> grid(shape.batches, shape.out, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, window_block));
    reduce_window_elements<V><<<blocks, window_block, 0, executor.stream>>>(reducer, Windows<Index>(shape), grid, y);
    return launched();
  });
}

template <class Gatherer>
Status gather_windows_of(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                         typename Gatherer::Element* dx) {
  if (shape.channels == 1 && is_in_reach(shape)) return gather_window_rows(executor, gatherer, shape, dx);
  return for_window_grid<typename Gatherer::Element>(shape, [&](auto width, auto index) {
    constexpr int V = decltype(width)::value;
    using Index = decltype(index);
    WindowGrid<Index> grid(shape.batches, shape.in, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, window_block));
    gather_window_elements<V><<<blocks, window_block, 0, executor.stream>>>(gatherer, Windows<Index>(shape), grid, dx);
    return launched();
  });
}

// body(part, elements of x before it, elements of y before it) for as many batches at a time as 32 bits reach; one that
// they do not reach stands alone.
template <class Body>
Status for_parts_in_reach(const WindowShape& shape, const Body& body) {
  WindowShape part = shape;
  part.batches = 1;
  int64_t x_batch = part.x_elements(), y_batch = part.y_elements();
  int64_t together = (window_reach - 1) / (x_batch > y_batch ? x_batch : y_batch);
  if (together < 1) together = 1;
  for (int64_t first = 0; first < shape.batches; first += together) {
    part.batches = together < shape.batches - first ? together : shape.batches - first;
    if (Status status = body(part, first * x_batch, first * y_batch); !status.ok()) return status;
  }
  return {};
}

}  // namespace internal

template <class Reducer>
Status reduce_windows(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                      typename Reducer::Element* y) {
  if (shape.y_elements() == 0) return {};
  return internal::for_parts_in_reach(shape, [&](const WindowShape& part, int64_t x_before, int64_t y_before) {
    return internal::reduce_windows_of(executor, reducer.after(x_before, y_before), part, y + y_before);
  });
}

template <class Gatherer>
Status gather_windows(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                      typename Gatherer::Element* dx) {
  if (shape.x_elements() == 0) return {};
  return internal::for_parts_in_reach(shape, [&](const WindowShape& part, int64_t x_before, int64_t y_before) {
    return internal::gather_windows_of(executor, gatherer.after(x_before, y_before), part, dx + x_before);
  });
}

}  // namespace baracuda
