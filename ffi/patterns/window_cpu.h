// The window pattern on CPU threads.
//
// Of n lanes, the last V are done together with some of those before them, and only the new ones are stored. Elements
// whose windows are not those of their neighbors, at the ends of W, are done one by one; a window of which a row fills
// the lanes has neighbors of its own in them. Where the windows along an axis are looked up, they are computed once for
// all.
#pragma once

#include <algorithm>
#include <vector>

#include "vectorize_cpu.h"
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
    return for_lanes<(widest > 4 ? widest / 2 : 1)>(begin, end, body);
  }
  by(Constant<1>{});
}

template <class Kernel>
inline constexpr int window_lanes = Kernel::vectorizes ? 64 / sizeof(Accumulator<typename Kernel::Element>) : 1;

// body(stride along W), as a constant where loads of such lanes are quick.
template <bool vectorizes, class Body>
void for_stride(int64_t stride, const Body& body) {
  if constexpr (vectorizes) {
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

// Steps of two along a row that is read, see `load` below.
struct Even {
  constexpr operator int() const { return 2; }
};
template <int V, class Step>
auto read_step_of(Step step) {
  if constexpr (V > 1 && std::is_same_v<Step, Constant<2>>)
    return Even{};
  else
    return step_of<V>(step);
}

// V values, two apart, in vectors as long as those that they are used in: from shorter ones they would go through
// memory, of which a longer load waits until all is written. None after the last value is read.
template <int V, class T>
inline Vector<T, V> load(const T* from, Even) {
  return load_even<V, internal::vector_bytes>(from);
}

// Tasks of many rows: body(for_each) calls for_each with what each row (batch, d, h) of the task gets. `steps` is a
// row's cost.
template <class Body>
void for_tasks_of_rows(const Executor& executor, int64_t batches, const int64_t* extents, int64_t steps,
                       const Body& body) {
  constexpr int64_t task_steps = 1 << 15;
  int64_t rows = batches * extents[0] * extents[1], range = task_steps / steps + 1;
  parallel_for(executor, ceil_div(rows, range), range * steps, [&](int64_t task) {
    body([&](const auto& of_row) {
      for (int64_t row = task * range; row < std::min(rows, (task + 1) * range); ++row)
        of_row(row / extents[1] / extents[0], row / extents[1] % extents[0], row % extents[1]);
    });
  });
}
template <class Body>
void for_rows(const Executor& executor, int64_t batches, const int64_t* extents, int64_t steps, const Body& body) {
  for_tasks_of_rows(executor, batches, extents, steps, [&](const auto& for_each) { for_each(body); });
}

// The strided windows of W that are not cut off.
inline WindowRange<int64_t> uncut_windows(const WindowShape& shape) {
  if (shape.adaptive[2] || shape.begins[2] != nullptr) return {0, 0};
  int64_t reach = (shape.size[2] - 1) * shape.dilation[2] + 1, room = shape.in[2] + shape.before[2] - reach;
  int64_t end = room < 0 ? 0 : std::min(shape.out[2], room / shape.stride[2] + 1);
  return {std::min(end, ceil_div(shape.before[2], shape.stride[2])), end};
}

// The elements of each window of an axis, and the windows of each element.
class WindowTables {
 public:
  WindowTables(const WindowShape& shape, Windows<int64_t, true>& windows) {
    for (int a = 0; a < 3; ++a) {
      if (!shape.is_general(a) || shape.begins[a] != nullptr || shape.in[a] + shape.out[a] > most) continue;
      for (int64_t o = 0; o < shape.out[a]; ++o) spans_[a].push_back(windows.span(a, 0, 0, o));
      for (int64_t i = 0; i < shape.in[a]; ++i) ranges_[a].push_back(windows.holding(a, 0, 0, i));
      windows.spans[a] = spans_[a].data(), windows.ranges[a] = ranges_[a].data();
    }
  }
  WindowTables(const WindowShape&, Windows<int64_t, false>&) {}

 private:
  static constexpr int64_t most = 1 << 18;
  std::vector<WindowSpan<int64_t>> spans_[3];
  std::vector<WindowRange<int64_t>> ranges_[3];
};

template <class Reducer, bool general>
struct WindowReduction {
  using T = typename Reducer::Element;
  static constexpr int widest = window_lanes<Reducer>;
  const Reducer& reducer;
  const WindowShape& shape;
  const Windows<int64_t, general>& windows;
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

  using State = typename Reducer::template State<1>;

  // What `count` states are together, by halves, which do not wait for each other.
  State merge(State* states, int64_t count) const {
    const Reducer own = reducer;
    while (count > 1) {
      int64_t half = (count + 1) / 2;
      BARACUDA_INDEPENDENT
      for (int64_t k = half; k < count; ++k) own.merge(states[k - half], states[k]);
      count = half;
    }
    return states[0];
  }

  // Whether a row of the window, or its rows together where they follow each other, are enough for vectors.
  bool fills_lanes(int64_t batch, int64_t h, int64_t w) const {
    int64_t length = windows.span(2, batch, 0, w).count;
    return length >= widest || (is_whole_row(length) && length * windows.span(1, batch, 0, h).count >= 4 * widest);
  }
  bool is_whole_row(int64_t length) const { return length == shape.in[2] && windows.apart(1) == 1; }

  // One window, whose elements along W are in lanes that are merged in the end. Whole rows of x follow each other.
  [[gnu::noinline]] void across(int64_t batch, int64_t d, int64_t h, int64_t w) const {
    constexpr int V = 2 * widest;
    auto window = windows.position(batch, d, h, w, 0);
    int64_t rows = window.extent[1], length = window.extent[2];
    if (is_whole_row(length)) length *= rows, rows = 1;
    typename Reducer::template State<V> lanes;
    State states[V + 1];
    reducer.start(lanes, window), reducer.start(states[V], window);
    for (int64_t i = 0; i < window.extent[0]; ++i)
      for (int64_t j = 0; j < rows; ++j) {
        int64_t offset = (i * windows.apart(0) * shape.in[1] + j * windows.apart(1)) * shape.in[2], k = 0;
        for (; k + V <= length; k += V, offset += V)
          reducer.push(lanes, reducer.template stage<V>(window.first + offset, Constant<1>{}, window.index + offset));
        for (; k < length; ++k, ++offset)
          reducer.push(states[V],
                       reducer.template stage<1>(window.first + offset, Constant<1>{}, window.index + offset));
      }
    for (int k = 0; k < V; ++k) states[k] = reducer.lane(lanes, k);
    store<1>(y + window.y_element, reducer.finish(merge(states, V + 1), windows, window, Constant<1>{}));
  }

  // Rows of windows of which each reads columns of its own, many rows of x long: the columns are reduced first, in
  // vectors, and then those of each window.
  bool are_columns() const {
    auto size = [&](int a) {
      return shape.adaptive[a] ? ceil_div(shape.in[a], shape.out[a]) : std::min(shape.size[a], shape.in[a]);
    };
    // A state of one number is merged quickly: in less time than it takes to read elements a stride apart.
    bool is_quick = sizeof(State) == sizeof(Accumulator<T>);
    return shape.channels == 1 && !shape.is_listed() && windows.apart(2) == 1 && size(0) * size(1) >= 4 &&
           (shape.adaptive[2] || (is_quick && shape.stride[2] > 2)) && size(2) < shape.in[2] &&
           shape.out[2] * size(2) <= 2 * shape.in[2];
  }

  class Columns {
   public:
    using Position = WindowPosition<int64_t>;

    explicit Columns(const WindowReduction& reduction)
        : reduction_(reduction), states_(size_t(reduction.shape.in[2])), merged_(states_.size()) {}

    void write(int64_t batch, int64_t d, int64_t h) {
      const auto& [reducer, shape, windows, y] = reduction_;
      auto ds = windows.span(0, batch, 0, d), hs = windows.span(1, batch, 0, h);
      Position window{windows.y_element(batch, d, h, 0, 0),
                      windows.x_element(batch, ds.first, hs.first, 0, 0),
                      (ds.first * shape.in[1] + hs.first) * shape.in[2],
                      {d, h, 0},
                      {ds.count, hs.count, 0}};
      bool is_empty = ds.count == 0 || hs.count == 0;
      if (!is_empty) for_lanes<2 * widest>(0, shape.in[2], [&](int64_t w, int, auto width) { read<width>(window, w); });
      for (int64_t w = 0; w < shape.out[2]; ++w, ++window.y_element) {
        auto ws = windows.span(2, batch, 0, w);
        if (is_empty || ws.count == 0) {
          reduction_.along_channels(batch, d, h, w);
          continue;
        }
        window.at[2] = w, window.extent[2] = ws.count;
        store<1>(y + window.y_element, reducer.finish(merge(ws.first, ws.count), windows, window, Constant<1>{}));
      }
    }

   private:
    template <int V>
    [[gnu::noinline]] void read(Position window, int64_t w) {
      const auto& [reducer, shape, windows, y] = reduction_;
      window.first += w, window.index += w;
      typename Reducer::template State<V> lanes;
      reducer.start(lanes, window);
      for (int64_t i = 0; i < window.extent[0]; ++i)
        for (int64_t j = 0; j < window.extent[1]; ++j) {
          int64_t offset = (i * windows.apart(0) * shape.in[1] + j * windows.apart(1)) * shape.in[2];
          reducer.push(lanes, reducer.template stage<V>(window.first + offset, Constant<1>{}, window.index + offset));
        }
      State* to = states_.data() + w;
      for (int k = 0; k < V; ++k) to[k] = reducer.lane(lanes, k);
    }

    State merge(int64_t first, int64_t count) {
      if (count >= 16) {
        std::copy_n(states_.data() + first, count, merged_.data());
        return reduction_.merge(merged_.data(), count);
      }
      State state = states_[size_t(first)];
      for (int64_t k = 1; k < count; ++k) reduction_.reducer.merge(state, states_[size_t(first + k)]);
      return state;
    }

    const WindowReduction& reduction_;
    std::vector<State> states_, merged_;
  };

  void along_channels(int64_t batch, int64_t d, int64_t h, int64_t w) const {
    if (shape.is_listed()) {
      for (int64_t channel = 0; channel < shape.channels; ++channel) tile<1>(batch, d, h, w, channel, Constant<1>{}, 0);
      return;
    }
    if constexpr (Reducer::merges)
      if (shape.channels == 1 && windows.apart(2) == 1 && fills_lanes(batch, h, w)) return across(batch, d, h, w);
    for_lanes<widest>(0, shape.channels, [&](int64_t channel, int skip, auto width) {
      tile<width.value>(batch, d, h, w, channel, Constant<1>{}, skip);
    });
  }

  void run(const Executor& executor) const {
    int64_t columns = shape.out[2], cost = shape.window_elements() * (Reducer::vectorizes ? 1 : 16);
    WindowRange<int64_t> uncut =
        shape.channels == 1 && !shape.is_listed() ? uncut_windows(shape) : WindowRange<int64_t>{0, 0};
    if constexpr (Reducer::merges)
      if (uncut.end - uncut.first < widest && (shape.size[2] >= widest || columns == 1)) uncut = {0, 0};
    if constexpr (Reducer::merges)
      if (are_columns())
        return for_tasks_of_rows(executor, shape.batches, shape.out, columns * cost, [&](const auto& for_each) {
          Columns rows(*this);
          for_each([&](int64_t b, int64_t d, int64_t h) { rows.write(b, d, h); });
        });
    for_stride<Reducer::vectorizes>(shape.stride[2], [&](auto stride) {
      for_rows(executor, shape.batches, shape.out, columns * shape.channels * cost,
               [&](int64_t b, int64_t d, int64_t h) {
                 for (int64_t w = 0; w < uncut.first; ++w) along_channels(b, d, h, w);
                 for_lanes<2 * widest>(uncut.first, uncut.end, [&](int64_t w, int skip, auto width) {
                   tile<width.value>(b, d, h, w, 0, read_step_of<width.value>(stride), skip);
                 });
                 for (int64_t w = uncut.end; w < columns; ++w) along_channels(b, d, h, w);
               });
    });
  }
};

template <class Gatherer, bool general>
struct WindowGather {
  using T = typename Gatherer::Element;
  using Range = WindowRange<int64_t>;
  static constexpr int widest = window_lanes<Gatherer>;
  const Gatherer& gatherer;
  const WindowShape& shape;
  const Windows<int64_t, general>& windows;
  T* dx;

  // A row of x, and the windows along D and H that hold it.
  struct Row {
    int64_t batch, d, h, first;
    Range ds, hs;
  };

  template <int V, class Step>
  [[gnu::noinline]] Vector<T, V> lanes(const Row& row, int64_t channel, int64_t w, Range ws, Step step) const {
    return windows.template gather<V>(gatherer, row.batch, row.d, row.h, w, channel, row.ds, row.hs, ws, step);
  }

  Row row_of(int64_t batch, int64_t d, int64_t h, int64_t channel) const {
    return {batch,
            d,
            h,
            windows.x_element(batch, d, h, 0, 0),
            windows.holding(0, batch, channel, d),
            windows.holding(1, batch, channel, h)};
  }

  void along_channels(const Row& row, int64_t w) const {
    int64_t first = row.first + w * shape.channels;
    if (shape.is_listed()) {
      for (int64_t channel = 0; channel < shape.channels; ++channel) {
        Row own = row_of(row.batch, row.d, row.h, channel);
        dx[first + channel] =
            lanes<1>(own, channel, w, windows.holding(2, row.batch, channel, w), Constant<1>{}).lane[0];
      }
      return;
    }
    Range ws = windows.holding(2, row.batch, 0, w);
    for_lanes<widest>(0, shape.channels, [&](int64_t channel, int skip, auto width) {
      auto value = lanes<width.value>(row, channel, w, ws, Constant<1>{});
      for (int k = skip; k < width; ++k) dx[first + channel + k] = value.lane[k];
    });
  }

  // The windows along W of each element of a row, in layers of one for each; `none` where an element has fewer.
  struct Layers {
    static constexpr int V = widest;
    int64_t columns, blocks, count = 0, none;
    std::vector<int32_t> windows;  // [count, blocks * V]
    std::vector<char> is_one;      // [count, blocks]: whether the elements of a block have the same window

    explicit Layers(const WindowGather& gather)
        : columns(gather.shape.in[2]), blocks(ceil_div(columns, V)), none(gather.shape.out[2]) {
      std::vector<Range> ranges;
      for (int64_t w = 0; w < columns; ++w) {
        ranges.push_back(gather.windows.holding(2, 0, 0, w));
        count = std::max(count, ranges.back().end - ranges.back().first);
      }
      for (int64_t layer = 0; layer < count; ++layer)
        for (int64_t w = 0; w < blocks * V; ++w) {
          Range range = ranges[size_t(std::min(w, columns - 1))];
          windows.push_back(int32_t(range.first + layer < range.end ? range.first + layer : none));
        }
      for (auto first = windows.begin(); first != windows.end(); first += V)
        is_one.push_back(std::all_of(first, first + V, [&](int32_t window) { return window == *first; }));
    }
  };

  // What windows give to each element of a row, next to each other as the elements are: so a row takes it in vectors,
  // wherever its windows begin. It is the same for all rows that the same windows along D and H hold.
  class Spread {
   public:
    static constexpr int V = widest;
    using Terms = typename Gatherer::template Terms<V>;
    using Given = typename Gatherer::template Terms<1>;

    Spread(const WindowGather& gather, const Layers& layers)
        : gather_(gather), layers_(layers), given_(size_t(layers.none + 1)) {
      given_.back() = Gatherer::nothing();
    }

    void write(const Row& row) {
      if (!is_of(row)) read(row);
      int64_t columns = layers_.columns, index = (row.d * gather_.shape.in[1] + row.h) * columns, w = 0;
      for (; w + V <= columns; w += V) store<V>(gather_.dx + row.first + w, sum(index, w));
      if (w == columns) return;
      auto last = sum(index, w);
      for (int k = 0; k < columns - w; ++k) gather_.dx[row.first + w + k] = last.lane[k];
    }

   private:
    // The windows of the rows before, if they are the same.
    bool is_of(const Row& row) const {
      auto are_same = [](const Range& a, const Range& b) { return a.first == b.first && a.end == b.end; };
      return batch_ == row.batch && are_same(ds_, row.ds) && are_same(hs_, row.hs) && is_shared_;
    }

    [[gnu::noinline]] void read(const Row& row) {
      const auto& [gatherer, shape, windows, dx] = gather_;
      batch_ = row.batch, ds_ = row.ds, hs_ = row.hs;
      is_shared_ = windows.apart(0) == 1 && windows.apart(1) == 1;
      rows_of_terms_ = 0;
      for (int64_t i = row.ds.first; i < row.ds.end; ++i)
        for (int64_t j = row.hs.first; j < row.hs.end; ++j) {
          if (!windows.holds(0, i, row.d) || !windows.holds(1, j, row.h)) continue;
          for (int64_t k = 0; k < shape.out[2]; ++k)
            given_[size_t(k)] = gatherer.template stage<1>(windows, windows.position(row.batch, i, j, k, 0));
          int64_t more = layers_.count * layers_.blocks, first = rows_of_terms_ * layers_.blocks;
          terms_.resize(size_t(first + more));
          for (int64_t block = 0; block < more; ++block) {
            Terms& to = terms_[size_t(first + block)];
            const int32_t* window = layers_.windows.data() + block * V;
            if (layers_.is_one[size_t(block)]) {
              Given one = given_[size_t(*window)];
              for (int k = 0; k < V; ++k) gatherer.set(to, k, one);
            } else {
              for (int k = 0; k < V; ++k) gatherer.set(to, k, given_[size_t(window[k])]);
            }
          }
          rows_of_terms_ += layers_.count;
        }
    }

    Vector<T, V> sum(int64_t index, int64_t w) const {
      typename Gatherer::template State<V> state;
      gather_.gatherer.start(state, Vector<T, V>{}, index + w, int64_t(1));
      for (int64_t i = 0; i < rows_of_terms_; ++i)
        gather_.gatherer.push(state, terms_[size_t(i * layers_.blocks + w / V)]);
      return gather_.gatherer.finish(state);
    }

    const WindowGather& gather_;
    const Layers& layers_;
    int64_t rows_of_terms_ = 0, batch_ = -1;
    Range ds_{}, hs_{};
    bool is_shared_ = false;
    std::vector<Given> given_;
    std::vector<Terms> terms_;  // [rows of terms, blocks]
  };

  // The elements [q * stride, (q + V) * stride) of the padded row, one phase after the other: lanes `stride` elements
  // apart lie alike in their windows.
  template <int V, class Stride>
  void along_w(const Row& row, int64_t q, Stride stride, int skip) const {
    int64_t w = q * stride - shape.before[2], element = row.first + w;
    auto phase = [&](int64_t i) {
      int64_t count = i < shape.size[2] ? (shape.size[2] - 1 - i) / stride + 1 : 0;
      return lanes<V>(row, 0, w + i, {q + 1 - count, q + 1}, step_of<V>(stride));
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
    // The windows of an element, about; of many, terms of a row would take more memory than they save time.
    int64_t columns = shape.in[2], overlap = 1;
    for (int a = 0; a < 3; ++a)
      overlap *= shape.adaptive[a] ? shape.out[a] / shape.in[a] + 1 : ceil_div(shape.size[a], shape.stride[a]);
    int64_t cost = overlap * (Gatherer::vectorizes ? 4 : 64);
    bool spreads = shape.channels == 1 && !shape.is_listed() && windows.apart(2) == 1 && overlap <= 32;
    // For these q, the windows that hold the elements [q * stride, (q + 1) * stride) of the padded row are all there,
    // and none is cut off.
    Range uncut = uncut_windows(shape);
    int64_t begin = uncut.first + ceil_div(shape.size[2], shape.stride[2]) - 1;
    int64_t end = std::min(uncut.end, (columns + shape.before[2]) / shape.stride[2]);
    int64_t from = begin * shape.stride[2] - shape.before[2], to = end * shape.stride[2] - shape.before[2];
    bool are_apart = shape.stride[2] > 2 && shape.size[2] <= shape.stride[2] && spreads && !Gatherer::reads_x;
    if (shape.channels > 1 || shape.is_listed() || shape.is_general(2) || end - begin < 4 || are_apart)
      begin = end = from = to = 0;
    if constexpr (!Gatherer::reads_x)
      if (begin == end && spreads) {
        Layers layers(*this);
        return for_tasks_of_rows(executor, shape.batches, shape.in, columns * cost, [&](const auto& for_each) {
          Spread spread(*this, layers);
          for_each([&](int64_t b, int64_t d, int64_t h) { spread.write(row_of(b, d, h, 0)); });
        });
      }
    for_stride<Gatherer::vectorizes>(shape.stride[2], [&](auto stride) {
      for_rows(executor, shape.batches, shape.in, columns * shape.channels * cost,
               [&](int64_t b, int64_t d, int64_t h) {
                 Row row = row_of(b, d, h, 0);
                 for (int64_t w = 0; w < from; ++w) along_channels(row, w);
                 for_lanes<widest>(
                     begin, end, [&](int64_t q, int skip, auto width) { along_w<width.value>(row, q, stride, skip); });
                 for (int64_t w = to; w < columns; ++w) along_channels(row, w);
               });
    });
  }
};

// body(geometry)
template <class Kernel, class Body>
void for_windows(const WindowShape& shape, const Body& body) {
  auto run = [&](auto windows) {
    WindowTables tables(shape, windows);
    body(windows);
  };
  if constexpr (Kernel::general)
    if (shape.is_general()) return run(Windows<int64_t, true>(shape));
  run(Windows<int64_t, false>(shape));
}

}  // namespace internal

template <class Reducer>
Status reduce_windows(const Executor& executor, const Reducer& reducer, const WindowShape& shape,
                      typename Reducer::Element* y) {
  if (shape.y_elements() == 0) return {};
  internal::for_windows<Reducer>(shape, [&]<bool general>(const Windows<int64_t, general>& windows) {
    internal::WindowReduction<Reducer, general>{reducer, shape, windows, y}.run(executor);
  });
  return {};
}

template <class Gatherer>
Status gather_windows(const Executor& executor, const Gatherer& gatherer, const WindowShape& shape,
                      typename Gatherer::Element* dx) {
  if (shape.x_elements() == 0) return {};
  internal::for_windows<Gatherer>(shape, [&]<bool general>(const Windows<int64_t, general>& windows) {
    internal::WindowGather<Gatherer, general>{gatherer, shape, windows, dx}.run(executor);
  });
  return {};
}

}  // namespace baracuda
