// The window pattern: each element of y [B, OD, OH, OW, C] has a window of x [B, D, H, W, C], a range of elements along
// each spatial axis. A range is one of three:
//   strided   begins at o * stride - before, and has `size` elements, `dilation` apart
//   adaptive  [floor(o * in / out), ceil((o + 1) * in / out)), so that all elements are in some window
//   listed    begins where a list for each plane says, in ascending order, and has `size` elements
// Elements outside x, in the padding, are none of the window's.
//
// It has two directions. `reduce_windows`: each element of y looks at the elements of its window. `gather_windows`:
// each element of x looks at the windows that hold it. What is looked at is read by `stage` and taken by `push`, so
// that a driver may keep it for others. Both work on V lanes: neighboring channels, or, where there is one channel,
// neighboring windows along W. Lane k's element of y is y_element + k, its element of x is x_element + k * step.
#pragma once

#include "../kernels/number.h"
#include "divisor.h"
#include "executor.h"

namespace baracuda {

namespace internal {
template <int value>
using Constant = std::integral_constant<int, value>;
}

struct WindowShape {
  int64_t batches = 1, channels = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, size[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1}, before[3] = {0, 0, 0}, after[3] = {0, 0, 0};
  bool adaptive[3] = {false, false, false};
  const int32_t* begins[3] = {nullptr, nullptr, nullptr};  // [batches, out, channels]

  int64_t x_elements() const { return batches * in[0] * in[1] * in[2] * channels; }
  int64_t y_elements() const { return batches * out[0] * out[1] * out[2] * channels; }
  bool is_listed() const { return begins[0] != nullptr || begins[1] != nullptr || begins[2] != nullptr; }
  // Whether there is more to a window than its size, stride and padding.
  bool is_general(int a) const { return adaptive[a] || begins[a] != nullptr || dilation[a] > 1; }
  bool is_general() const { return is_general(0) || is_general(1) || is_general(2); }
  // The elements of a window, about.
  int64_t window_elements() const {
    int64_t count = 1;
    for (int a = 0; a < 3; ++a) {
      int64_t of_axis = adaptive[a] && out[a] > 0 ? ceil_div(in[a], out[a]) : size[a] < in[a] ? size[a] : in[a];
      count *= of_axis > 1 ? of_axis : 1;
    }
    return count;
  }
};

// Elements along an axis: `first`, and more that are some distance apart.
template <class Index>
struct WindowSpan {
  Index first, count;
};

// The windows [first, end) of an axis.
template <class Index>
struct WindowRange {
  Index first, end;
};

// A window: its position in y, its first element in x, the index of that in its plane of D x H x W, and its extents.
// Lane 0's; all lanes have the same extents.
template <class Index>
struct WindowPosition {
  Index y_element, first, index;
  Index at[3], extent[3];
};

// The geometry as the elements see it. One that is not general has neither dilation nor adaptive or listed windows.
template <class Index, bool general>
struct Windows {
  using Span = WindowSpan<Index>;
  using Range = WindowRange<Index>;
  using Position = WindowPosition<Index>;
  Index channels, in[3], out[3], size[3], before[3], after[3];
  Divisor<Index> stride[3], dilation[3], by_in[3], by_out[3];
  bool adaptive[3];
  const int32_t* begins[3];
  // What a driver computed for all, or null.
  const Span* spans[3] = {nullptr, nullptr, nullptr};
  const Range* ranges[3] = {nullptr, nullptr, nullptr};

  explicit Windows(const WindowShape& shape) : channels(Index(shape.channels)) {
    auto divisor = [](int64_t d) { return Divisor<Index>(d > 0 ? d : 1); };
    for (int a = 0; a < 3; ++a) {
      in[a] = Index(shape.in[a]), out[a] = Index(shape.out[a]), size[a] = Index(shape.size[a]);
      before[a] = Index(shape.before[a]), after[a] = Index(shape.after[a]);
      stride[a] = divisor(shape.stride[a]), dilation[a] = divisor(shape.dilation[a]);
      by_in[a] = divisor(shape.in[a]), by_out[a] = divisor(shape.out[a]);
      adaptive[a] = shape.adaptive[a], begins[a] = shape.begins[a];
    }
  }
  BARACUDA_HD Index x_element(Index batch, Index d, Index h, Index w, Index channel) const {
    return (((batch * in[0] + d) * in[1] + h) * in[2] + w) * channels + channel;
  }
  BARACUDA_HD Index y_element(Index batch, Index d, Index h, Index w, Index channel) const {
    return (((batch * out[0] + d) * out[1] + h) * out[2] + w) * channels + channel;
  }
  // How far apart a window's elements are.
  BARACUDA_HD Index apart(int axis) const { return general ? dilation[axis].value : Index(1); }
  // How far apart the elements of lanes are in a plane.
  template <class Step>
  BARACUDA_HD Index between_lanes(Step step) const {
    return channels == 1 ? Index(step) : Index(0);
  }

  // The first element, in the padding or not, of a strided window.
  BARACUDA_HD Index begin(int axis, Index o) const { return o * stride[axis].value - before[axis]; }
  BARACUDA_HD Index listed(int axis, Index batch, Index channel, Index o) const {
    Index first = Index(begins[axis][(batch * out[axis] + o) * channels + channel]), last = in[axis] - size[axis];
    first = first < last ? first : last;
    return first > 0 ? first : Index(0);  // wherever it is, the window is in x
  }

  // The elements of window o of an axis.
  BARACUDA_HD Span span(int axis, Index batch, Index channel, Index o) const {
    if constexpr (general) {
      if (begins[axis] != nullptr) return {listed(axis, batch, channel, o), size[axis]};
      if (spans[axis] != nullptr) return spans[axis][o];
      if (adaptive[axis]) {
        Index first = by_out[axis].quotient(o * in[axis]);
        return {first, by_out[axis].quotient((o + 1) * in[axis] + out[axis] - 1) - first};
      }
    }
    Index first = begin(axis, o), count = size[axis];
    if constexpr (general) {
      if (dilation[axis].value > 1) {
        if (first < 0) {
          Index outside = dilation[axis].quotient(dilation[axis].value - 1 - first);
          first += outside * dilation[axis].value, count -= outside;
        }
        Index there = first < in[axis] ? dilation[axis].quotient(in[axis] - 1 - first) + 1 : Index(0);
        count = count < there ? count : there;
        return {first, count > 0 ? count : Index(0)};
      }
    }
    Index end = first + count;
    first = first > 0 ? first : Index(0), end = end < in[axis] ? end : in[axis];
    return {first, end > first ? end - first : Index(0)};
  }
  // How many elements of a strided window are in x or its padding.
  BARACUDA_HD Index padded(int axis, Index o) const {
    Index room = in[axis] + after[axis] - begin(axis, o);
    if constexpr (general) {
      if (dilation[axis].value > 1) room = dilation[axis].quotient(room - 1) + 1;
    }
    return size[axis] < room ? size[axis] : room;
  }

  // The windows that hold element i of an axis; of dilated ones, those for which `holds` is true.
  BARACUDA_HD Range holding(int axis, Index batch, Index channel, Index i) const {
    Index reach = size[axis];
    if constexpr (general) {
      if (begins[axis] != nullptr)
        return {first_beyond(axis, batch, channel, i - size[axis]), first_beyond(axis, batch, channel, i)};
      if (ranges[axis] != nullptr) return ranges[axis][i];
      if (adaptive[axis])
        return {by_in[axis].quotient(i * out[axis]), by_in[axis].quotient((i + 1) * out[axis] + in[axis] - 1)};
      reach = (reach - 1) * dilation[axis].value + 1;
    }
    Index offset = i + before[axis], last = stride[axis].quotient(offset);
    return {offset < reach ? Index(0) : stride[axis].quotient(offset - reach) + 1,
            (last < out[axis] ? last + 1 : out[axis])};
  }
  BARACUDA_HD bool holds(int axis, Index o, Index i) const {
    if constexpr (general) {
      if (adaptive[axis] || begins[axis] != nullptr || dilation[axis].value == 1) return true;
      Index offset = i - begin(axis, o);
      return offset == dilation[axis].quotient(offset) * dilation[axis].value;
    }
    return true;
  }

  // The index of a window without elements is one beyond the plane's.
  BARACUDA_HD Position position(Index batch, Index d, Index h, Index w, Index channel) const {
    Span ds = span(0, batch, channel, d), hs = span(1, batch, channel, h), ws = span(2, batch, channel, w);
    bool is_empty = (ds.count == 0) | (hs.count == 0) | (ws.count == 0);
    Index index = (ds.first * in[1] + hs.first) * in[2] + ws.first;
    return {y_element(batch, d, h, w, channel),
            x_element(batch, ds.first, hs.first, ws.first, channel),
            is_empty ? in[0] * in[1] * in[2] : index,
            {d, h, w},
            {ds.count, hs.count, ws.count}};
  }

  // Reduces the window at (d, h, w).
  template <int V, class Reducer, class Step>
  BARACUDA_HD Vector<typename Reducer::Element, V> reduce(const Reducer& reducer, Index batch, Index d, Index h,
                                                          Index w, Index channel, Step step) const {
    typename Reducer::template State<V> state;
    Position window = position(batch, d, h, w, channel);
    reducer.start(state, window);
    for (Index i = 0; i < window.extent[0]; ++i)
      for (Index j = 0; j < window.extent[1]; ++j) {
        Index row = (i * apart(0) * in[1] + j * apart(1)) * in[2];
        for (Index k = 0; k < window.extent[2]; ++k) {
          Index offset = row + k * apart(2);
          reducer.push(state, reducer.template stage<V>(window.first + offset * channels, step, window.index + offset));
        }
      }
    return reducer.finish(state, *this, window, step);
  }

  // Gathers from lane 0's windows `ds` x `hs` x `ws` of element (d, h, w), and from those that hold the other lanes'
  // elements alike.
  template <int V, class Gatherer, class Step>
  BARACUDA_HD Vector<typename Gatherer::Element, V> gather(const Gatherer& gatherer, Index batch, Index d, Index h,
                                                           Index w, Index channel, Range ds, Range hs, Range ws,
                                                           Step step) const {
    typename Gatherer::template State<V> state;
    Index element = x_element(batch, d, h, w, channel);
    Vector<typename Gatherer::Element, V> x{};
    if constexpr (Gatherer::reads_x) x = load<V>(gatherer.x + element, step);
    gatherer.start(state, x, (d * in[1] + h) * in[2] + w, between_lanes(step));
    for (Index i = ds.first; i < ds.end; ++i) {
      if (!holds(0, i, d)) continue;
      for (Index j = hs.first; j < hs.end; ++j) {
        if (!holds(1, j, h)) continue;
        for (Index k = ws.first; k < ws.end; ++k) {
          if (!holds(2, k, w)) continue;
          Position window = position(batch, i, j, k, channel);
          gatherer.push(state, gatherer.template stage<V>(*this, window), *this, element, step, window);
        }
      }
    }
    return gatherer.finish(state);
  }

 private:
  // The first window that begins after an element.
  BARACUDA_HD Index first_beyond(int axis, Index batch, Index channel, Index i) const {
    Index low = 0, high = out[axis];
    while (low < high) {
      Index middle = (low + high) / 2;
      if (listed(axis, batch, channel, middle) > i)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
};

}  // namespace baracuda
