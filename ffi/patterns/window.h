// The window pattern: windows of a fixed size slide over the spatial axes of x [B, D, H, W, C], one for each element of
// y [B, OD, OH, OW, C]. Window o starts at o * stride, inside x; one that sticks out over the high end is cut off
// there.
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

  int64_t x_elements() const { return batches * in[0] * in[1] * in[2] * channels; }
  int64_t y_elements() const { return batches * out[0] * out[1] * out[2] * channels; }
};

// A window as an element of x that it holds sees it: all lanes' windows have the same extents.
template <class Index>
struct WindowPosition {
  Index y_element, first;  // lane 0's element of y, and the first element of its window
  Index extent[3];
};

// The geometry as the elements see it.
template <class Index>
struct Windows {
  Index channels, in[3], out[3], size[3];
  Divisor<Index> stride[3];

  explicit Windows(const WindowShape& shape) : channels(Index(shape.channels)) {
    for (int a = 0; a < 3; ++a) {
      in[a] = Index(shape.in[a]), out[a] = Index(shape.out[a]), size[a] = Index(shape.size[a]);
      stride[a] = Divisor<Index>(shape.stride[a]);
    }
  }
  BARACUDA_HD Index x_element(Index batch, Index d, Index h, Index w, Index channel) const {
    return (((batch * in[0] + d) * in[1] + h) * in[2] + w) * channels + channel;
  }
  BARACUDA_HD Index y_element(Index batch, Index d, Index h, Index w, Index channel) const {
    return (((batch * out[0] + d) * out[1] + h) * out[2] + w) * channels + channel;
  }
  BARACUDA_HD Index extent(int axis, Index first) const {
    Index room = in[axis] - first;
    return size[axis] < room ? size[axis] : room;
  }

  BARACUDA_HD WindowPosition<Index> position(Index batch, Index d, Index h, Index w, Index channel) const {
    Index from[3] = {d * stride[0].value, h * stride[1].value, w * stride[2].value};
    return {y_element(batch, d, h, w, channel),
            x_element(batch, from[0], from[1], from[2], channel),
            {extent(0, from[0]), extent(1, from[1]), extent(2, from[2])}};
  }

  // The windows [first, end) that hold position i of an axis.
  struct Range {
    Index first, end;
  };
  BARACUDA_HD Range holding(int axis, Index i) const {
    Index last = stride[axis].quotient(i);
    return {i < size[axis] ? Index(0) : stride[axis].quotient(i - size[axis]) + 1,
            (last < out[axis] ? last + 1 : out[axis])};
  }

  // Reduces the window at (d, h, w); all lanes' windows have the extent of lane 0's.
  template <int V, class Reducer, class Step>
  BARACUDA_HD Vector<typename Reducer::Element, V> reduce(const Reducer& reducer, Index batch, Index d, Index h,
                                                          Index w, Index channel, Step step) const {
    typename Reducer::template State<V> state;
    Index to = y_element(batch, d, h, w, channel);
    reducer.start(state, to);
    d *= stride[0].value, h *= stride[1].value, w *= stride[2].value;
    Index extent_d = extent(0, d), extent_h = extent(1, h), extent_w = extent(2, w);
    Index plane = x_element(batch, d, h, w, channel);
    for (Index i = 0; i < extent_d; ++i, plane += in[1] * in[2] * channels) {
      Index row = plane;
      for (Index j = 0; j < extent_h; ++j, row += in[2] * channels)
        for (Index k = 0; k < extent_w; ++k) reducer.push(state, reducer.template stage<V>(row + k * channels, step));
    }
    return reducer.finish(state, to);
  }

  // Gathers from lane 0's windows `ds` x `hs` x `ws`, and from what lies as they do for the other lanes.
  template <int V, class Gatherer, class Step>
  BARACUDA_HD Vector<typename Gatherer::Element, V> gather(const Gatherer& gatherer, Index batch, Index channel,
                                                           Index element, Range ds, Range hs, Range ws,
                                                           Step step) const {
    typename Gatherer::template State<V> state;
    gatherer.start(state, load<V>(gatherer.x + element, step));
    for (Index d = ds.first; d < ds.end; ++d)
      for (Index h = hs.first; h < hs.end; ++h)
        for (Index w = ws.first; w < ws.end; ++w) {
          auto window = position(batch, d, h, w, channel);
          gatherer.push(state, gatherer.template stage<V>(window.y_element), *this, element, step, window);
        }
    return gatherer.finish(state);
  }
};

}  // namespace baracuda
