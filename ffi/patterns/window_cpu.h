// The window pattern on CPU threads.
//
// Of n lanes, the last V are done together with some of those before them, and only the new ones are stored. Elements
// whose windows are not those of their neighbors, at the ends of W, are done one by one.
#pragma once

#include <algorithm>

#include "window.h"

namespace baracuda {
namespace internal {

// body(first, skip, Constant<V>): lanes [first, first + V), of which the first `skip` are done already.
template <int widest, class Body>
void for_lanes(int64_t begin, int64_t end, const Body& body) {
  auto by = [&](auto width) {
    int64_t first = begin;
    for (; first + width <= end; first += width) body(first, 0, width);
    if (first < end) body(end - width, int(first - (end - width)), width);
  };
  if constexpr (widest > 1) {
    if (end - begin >= widest) return by(Constant<widest>{});
    if (end - begin >= 4) return by(Constant<4>{});
  }
  by(Constant<1>{});
}

template <class Kernel>
inline constexpr int window_lanes = Kernel::vectorises ? 64 / sizeof(Accumulator<typename Kernel::Element>) : 1;

// body(stride along W), as a constant where loads of such lanes are quick.
template <bool vectorises, class Body>
void for_stride(int64_t stride, const Body& body) {
  if constexpr (vectorises) {
    if (stride == 1) return body(Constant<1>{});
    if (stride == 2) return body(Constant<2>{});
    body(stride);
  } else {
    body(stride);
  }
}

// One lane has no step, and so needs no code of its own for each.
template <int V, class Step>
auto step_of(Step step) {
  if constexpr (V == 1)
    return Constant<1>{};
  else
    return step;
}

// body(batch, d, h) for every row, in tasks of many elements. `steps` is a row's cost.
template <class Body>
void for_rows(const Executor& executor, int64_t batches, const int64_t* extents, int64_t steps, const Body& body) {
  constexpr int64_t task_steps = 1 << 15;
  int64_t rows = batches * extents[0] * extents[1], range = task_steps / steps + 1;
  parallel_for(executor, ceil_div(rows, range), range * steps, [&](int64_t task) {
    for (int64_t row = task * range; row < std::min(rows, (task + 1) * range); ++row)
      body(row / extents[1] / extents[0], row / extents[1] % extents[0], row % extents[1]);
  });
}

template <class Reducer>
struct WindowReduction {
  using T = typename Reducer::Element;
  static constexpr int widest = window_lanes<Reducer>;
  const Reducer& reducer;
  const WindowShape& shape;
  Windows<int64_t> windows;
  T* y;

  // Lanes [skip, V) of the windows from (d, h, w) on. Never inlined: rows of every kind share it.
  template <int V, class Step>
  [[gnu::noinline]] void tile(int64_t batch, int64_t d, int64_t h, int64_t w, int64_t channel, Step step,
                              int skip) const {
    auto value = windows.template reduce<V>(reducer, batch, d, h, w, channel, step);
    T* to = y + windows.y_element(batch, d, h, w, channel);
    if (skip == 0) return store<V>(to, value);
    for (int k = skip; k < V; ++k) to[k] = value.lane[k];
  }

  void along_channels(int64_t batch, int64_t d, int64_t h, int64_t w) const {
    for_lanes<widest>(0, shape.channels, [&](int64_t channel, int skip, auto width) {
      tile<width.value>(batch, d, h, w, channel, Constant<1>{}, skip);
    });
  }

  void run(const Executor& executor) const {
    int64_t columns = shape.out[2];
    int64_t uncut = std::min(columns, (shape.in[2] - shape.size[2]) / shape.stride[2] + 1);
    int64_t cost = shape.size[0] * shape.size[1] * shape.size[2] * (Reducer::vectorises ? 1 : 16);
    for_stride<Reducer::vectorises>(shape.stride[2], [&](auto stride) {
      for_rows(executor, shape.batches, shape.out, columns * shape.channels * cost,
               [&](int64_t b, int64_t d, int64_t h) {
                 int64_t first = 0;
                 if (shape.channels == 1) {
                   for_lanes<widest>(0, uncut, [&](int64_t w, int skip, auto width) {
                     tile<width.value>(b, d, h, w, 0, step_of<width.value>(stride), skip);
                   });
                   first = uncut;
                 }
                 for (int64_t w = first; w < columns; ++w) along_channels(b, d, h, w);
               });
    });
  }
};

template <class Gatherer>
struct WindowGather {
  using T = typename Gatherer::Element;
  using Range = typename Windows<int64_t>::Range;
  static constexpr int widest = window_lanes<Gatherer>;
  const Gatherer& gatherer;
  const WindowShape& shape;
  Windows<int64_t> windows;
  T* dx;

  // A row of x, and the windows along D and H that hold it.
  struct Row {
    int64_t batch, first;
    Range ds, hs;
  };

  template <int V, class Step>
  [[gnu::noinline]] Vector<T, V> lanes(const Row& row, int64_t channel, int64_t element, Range ws, Step step) const {
    return windows.template gather<V>(gatherer, row.batch, channel, element, row.ds, row.hs, ws, step);
  }

  void along_channels(const Row& row, int64_t w) const {
    Range ws = windows.holding(2, w);
    for_lanes<widest>(0, shape.channels, [&](int64_t channel, int skip, auto width) {
      int64_t element = row.first + w * shape.channels + channel;
      auto value = lanes<width.value>(row, channel, element, ws, Constant<1>{});
      for (int k = skip; k < width; ++k) dx[element + k] = value.lane[k];
    });
  }

  // The elements [q * stride, (q + V) * stride), one phase after the other: lanes `stride` elements apart lie alike in
  // their windows.
  template <int V, class Stride>
  void along_w(const Row& row, int64_t q, Stride stride, int skip) const {
    int64_t element = row.first + q * stride;
    auto phase = [&](int64_t i) {
      int64_t count = i < shape.size[2] ? (shape.size[2] - 1 - i) / stride + 1 : 0;
      return lanes<V>(row, 0, element + i, {q + 1 - count, q + 1}, step_of<V>(stride));
    };
    if constexpr (std::is_same_v<Stride, int64_t>) {
      for (int64_t i = 0; i < stride; ++i) {
        auto value = phase(i);
        for (int k = skip; k < V; ++k) dx[element + k * stride + i] = value.lane[k];
      }
    } else {
      constexpr int phases = Stride::value;
      Vector<T, V> value[phases];
      for (int i = 0; i < phases; ++i) value[i] = phase(i);
      Vector<T, V * phases> all;
      for (int k = 0; k < V; ++k)
        for (int i = 0; i < phases; ++i) all.lane[k * phases + i] = value[i].lane[k];
      if (skip == 0) return store<V * phases>(dx + element, all);
      for (int k = skip * phases; k < V * phases; ++k) dx[element + k] = all.lane[k];
    }
  }

  void run(const Executor& executor) const {
    int64_t columns = shape.in[2], cost = Gatherer::vectorises ? 4 : 64;
    for (int a = 0; a < 3; ++a) cost *= ceil_div(shape.size[a], shape.stride[a]);
    // For these q, the windows that hold the elements [q * stride, (q + 1) * stride) are all there, and none is cut
    // off.
    int64_t uncut = (columns - shape.size[2]) / shape.stride[2] + 1;
    int64_t begin = ceil_div(shape.size[2], shape.stride[2]) - 1;
    int64_t end = std::min({shape.out[2], uncut, columns / shape.stride[2]});
    if (shape.channels > 1 || end - begin < 4) begin = end = 0;
    for_stride<Gatherer::vectorises>(shape.stride[2], [&](auto stride) {
      for_rows(executor, shape.batches, shape.in, columns * shape.channels * cost,
               [&](int64_t b, int64_t d, int64_t h) {
                 Row row{b, windows.x_element(b, d, h, 0, 0), windows.holding(0, d), windows.holding(1, h)};
                 for (int64_t w = 0; w < begin * stride; ++w) along_channels(row, w);
                 for_lanes<widest>(
                     begin, end, [&](int64_t q, int skip, auto width) { along_w<width.value>(row, q, stride, skip); });
                 for (int64_t w = end * stride; w < columns; ++w) along_channels(row, w);
               });
    });
  }
};

}  // namespace internal

template <class Reducer>
Status reduce_windows(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                      typename Reducer::Element* y) {
  if (shape.y_elements() == 0) return {};
  internal::WindowReduction<Reducer>{reducer, shape, Windows<int64_t>(shape), y}.run(executor);
  return {};
}

template <class Gatherer>
Status gather_windows(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                      typename Gatherer::Element* dx) {
  if (shape.x_elements() == 0) return {};
  internal::WindowGather<Gatherer>{gatherer, shape, Windows<int64_t>(shape), dx}.run(executor);
  return {};
}

}  // namespace baracuda
