// The window pattern on a CUDA grid: down rows where there is one channel, otherwise a thread for each V neighboring
// channels of an element of y, or of x, or of a few whose windows the compiler knows, in the order of memory. Large
// windows are reduced by columns, or by teams of threads.
#pragma once

#include "window_channels_cuda.h"
#include "window_columns_cuda.h"
#include "window_known_channels_cuda.h"
#include "window_known_rows_cuda.h"
#include "window_rows_cuda.h"
#include "window_slices_cuda.h"
#include "window_teams_cuda.h"

namespace baracuda {
namespace internal {

template <int V, class Index, bool general, class Reducer>
__global__ void __launch_bounds__(window_block)
    reduce_window_elements(Reducer reducer, Windows<Index, general> windows, WindowGrid<Index> grid,
                           typename Reducer::Element* y) {
  int64_t index = int64_t(blockIdx.x) * window_block + threadIdx.x;
  if (index >= grid.threads) return;
  auto [batch, d, h, w, group] = grid.position(Index(index));
  store<V>(y + index * V, windows.template reduce<V>(reducer, batch, d, h, w, Index(group * V), Constant<1>{}));
}

template <int V, class Index, bool general, class Gatherer>
__global__ void __launch_bounds__(window_block)
    gather_window_elements(Gatherer gatherer, Windows<Index, general> windows, WindowGrid<Index> grid,
                           typename Gatherer::Element* dx) {
  int64_t index = int64_t(blockIdx.x) * window_block + threadIdx.x;
  if (index >= grid.threads) return;
  auto [batch, d, h, w, group] = grid.position(Index(index));
  Index channel = group * V;
  store<V>(dx + index * V,
           windows.template gather<V>(gatherer, batch, d, h, w, channel, windows.holding(0, batch, channel, d),
                                      windows.holding(1, batch, channel, h), windows.holding(2, batch, channel, w),
                                      Constant<1>{}));
}

// Fewer elements than this 32 bits reach, and a step beyond.
inline constexpr int64_t window_reach = (int64_t(1) << 31) - (1 << 16);

inline bool is_in_reach(const WindowShape& shape) {
  bool fits = shape.x_elements() < window_reach && shape.y_elements() < window_reach;
  for (int a = 0; a < 3; ++a) {
    fits &= shape.in[a] + shape.before[a] + shape.after[a] + shape.size[a] * shape.dilation[a] < window_reach;
    if (shape.adaptive[a]) fits &= (shape.in[a] + 1) * (shape.out[a] + 1) < window_reach;
  }
  return fits;
}

// body(Constant<V>, Windows<Index, general>): V channels where they are aligned and alike, 32 bits where they reach
// every element.
template <class Kernel, class Body>
Status for_window_grid(const WindowShape& shape, const Body& body) {
  using T = typename Kernel::Element;
  constexpr int V = 16 / sizeof(T) < 4 ? 16 / sizeof(T) : 4;
  auto of = [&](auto general) {
    constexpr bool is_general = decltype(general)::value;
    if (!is_in_reach(shape)) return body(Constant<1>{}, Windows<int64_t, is_general>(shape), int64_t(0));
    if (shape.channels % V == 0 && !shape.is_listed())
      return body(Constant<V>{}, Windows<int32_t, is_general>(shape), int32_t(0));
    return body(Constant<1>{}, Windows<int32_t, is_general>(shape), int32_t(0));
  };
  if constexpr (Kernel::general)
    if (shape.is_general()) return of(std::true_type{});
  return of(std::false_type{});
}

template <class Reducer>
Status reduce_windows_of(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                         typename Reducer::Element* y) {
  if (is_in_reach(shape)) {
    if constexpr (Reducer::merges)
      if (are_for_teams(shape)) {
        if (shape.channels > 1) return reduce_window_channels(executor, reducer, shape, y);
        if (are_slices(shape)) return reduce_window_slices(executor, reducer, shape, y);
        if (are_for_columns<Reducer>(shape)) return reduce_window_columns(executor, reducer, shape, y);
        return reduce_window_teams(executor, reducer, shape, y);
      }
    if (shape.channels == 1) {
      if constexpr (Reducer::takes) {
        Status status;
        if (are_known_windows(executor, reducer, shape, y, status)) return status;
      }
      return reduce_window_rows(executor, reducer, shape, y);
    }
    if constexpr (Reducer::takes) {
      Status status;
      if (are_known_channels(executor, reducer, shape, y, status)) return status;
    }
  }
  return for_window_grid<Reducer>(shape, [&](auto width, auto windows, auto index) {
    constexpr int V = decltype(width)::value;
    WindowGrid<decltype(index)> grid(shape.batches, shape.out, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, window_block));
    reduce_window_elements<V><<<blocks, window_block, 0, executor.stream>>>(reducer, windows, grid, y);
    return launched();
  });
}

template <class Gatherer>
Status gather_windows_of(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                         typename Gatherer::Element* dx) {
  if (shape.channels == 1 && is_in_reach(shape)) {
    if constexpr (!Gatherer::reads_x) {
      Status status;
      if (are_tall_windows(executor, gatherer, shape, dx, status)) return status;
    }
    return gather_window_rows(executor, gatherer, shape, dx);
  }
  if constexpr (Gatherer::is_quick && !Gatherer::reads_x) {
    Status status;
    if (is_in_reach(shape) && gather_known_channels(executor, gatherer, shape, dx, status)) return status;
  }
  return for_window_grid<Gatherer>(shape, [&](auto width, auto windows, auto index) {
    constexpr int V = decltype(width)::value;
    WindowGrid<decltype(index)> grid(shape.batches, shape.in, shape.channels / V);
    unsigned blocks = unsigned(ceil_div(grid.threads, window_block));
    gather_window_elements<V><<<blocks, window_block, 0, executor.stream>>>(gatherer, windows, grid, dx);
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
    for (int a = 0; a < 3; ++a)
      if (shape.begins[a] != nullptr) part.begins[a] = shape.begins[a] + first * shape.out[a] * shape.channels;
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
