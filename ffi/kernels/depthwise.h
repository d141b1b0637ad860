// The depthwise convolution: channel o of y has a window of channel o / multiplier of x, and weights of its own,
//   y[n, o, i] = bias[o] + sum over k of weight[o, k] x[n, c, i stride + k dilation - before], with x = 0 outside,
// along three spatial axes; those of sequences and images that are missing have one element. Here is what one element
// of y, dx and dweight is. Drivers compute usual windows otherwise, with the same sums.
#pragma once

#include "quotient.h"

namespace baracuda {

// Arrays are [groups, batches, channels, *spatial], or have the channels last; weights are [groups, outputs, *window],
// or have the outputs last too; the bias is [groups, outputs].
struct DepthwiseShape {
  int64_t groups = 1, batches = 1, channels = 1, multiplier = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, window[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, before[3] = {0, 0, 0};
  bool channels_last = false;

  BARACUDA_HD int64_t outputs() const { return channels * multiplier; }
  BARACUDA_HD int64_t sequences() const { return groups * batches; }
  BARACUDA_HD int64_t taps() const { return window[0] * window[1] * window[2]; }
  BARACUDA_HD int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  BARACUDA_HD int64_t out_plane() const { return out[0] * out[1] * out[2]; }

  // The element of an axis of x that element k of window i reads, which may be outside.
  BARACUDA_HD int64_t read(int axis, int64_t i, int64_t k) const {
    return i * stride[axis] + k * dilation[axis] - before[axis];
  }
  BARACUDA_HD bool is_inside(int axis, int64_t element) const { return element >= 0 && element < in[axis]; }
  // The window whose element k is element j of an axis of x, or -1.
  BARACUDA_HD int64_t window_at(int axis, int64_t j, int64_t k) const {
    int64_t offset = j + before[axis] - k * dilation[axis];
    if (offset < 0) return -1;
    int64_t i = stride[axis] == 1 ? offset : quotient(offset, stride[axis]);
    return i < out[axis] && i * stride[axis] == offset ? i : -1;
  }
  // Indices of elements: of a channel of x or of y among those of a group, and of a position in its plane.
  BARACUDA_HD int64_t x_index(int64_t sequence, int64_t channel, int64_t position) const {
    return channels_last ? (sequence * in_plane() + position) * channels + channel
                         : (sequence * channels + channel) * in_plane() + position;
  }
  BARACUDA_HD int64_t y_index(int64_t sequence, int64_t output, int64_t position) const {
    return channels_last ? (sequence * out_plane() + position) * outputs() + output
                         : (sequence * outputs() + output) * out_plane() + position;
  }
  BARACUDA_HD int64_t weight_index(int64_t group, int64_t output, int64_t tap) const {
    return channels_last ? (group * taps() + tap) * outputs() + output : (group * outputs() + output) * taps() + tap;
  }
};

// A position of a plane, along each axis.
struct PlanePosition {
  int64_t at[3];
  BARACUDA_HD PlanePosition(int64_t position, const int64_t (&extent)[3]) {
    int64_t rows = quotient(position, extent[2]), planes = quotient(rows, extent[1]);
    at[0] = planes, at[1] = rows - planes * extent[1], at[2] = position - rows * extent[2];
  }
};

template <class T>
struct Depthwise {
  using Wide = Accumulator<T>;
  DepthwiseShape shape;
  const T *x, *weight;

  // The elements of y of V neighboring channels: without a multiplier, unless V is 1. The zeros around x are multiplied
  // too: so an infinite weight gives NaN.
  template <int V>
  BARACUDA_HD Vector<T, V> y_at(const T* bias, int64_t sequence, int64_t output, PlanePosition i) const {
    int64_t group = quotient(sequence, shape.batches), channel = quotient(output, shape.multiplier), tap = 0;
    Wide sums[V] = {};
    for (int64_t a = 0; a < shape.window[0]; ++a)
      for (int64_t b = 0; b < shape.window[1]; ++b)
        for (int64_t c = 0; c < shape.window[2]; ++c, ++tap) {
          int64_t d = shape.read(0, i.at[0], a), h = shape.read(1, i.at[1], b), w = shape.read(2, i.at[2], c);
          bool is_inside = shape.is_inside(0, d) && shape.is_inside(1, h) && shape.is_inside(2, w);
          Vector<T, V> values{}, factors = load<V>(weight + shape.weight_index(group, output, tap));
          if (is_inside)
            values = load<V>(x + shape.x_index(sequence, channel, (d * shape.in[1] + h) * shape.in[2] + w));
          for (int v = 0; v < V; ++v) sums[v] += Wide(factors.lane[v]) * Wide(values.lane[v]);
        }
    Vector<T, V> y, more = load<V>(bias + group * shape.outputs() + output);
    for (int v = 0; v < V; ++v) y.lane[v] = T(sums[v] + Wide(more.lane[v]));
    return y;
  }

  // The elements of dx of V neighboring channels, in the same way, from the windows that hold position j.
  template <int V>
  BARACUDA_HD Vector<T, V> dx_at(const T* dy, int64_t sequence, int64_t channel, PlanePosition j) const {
    int64_t group = quotient(sequence, shape.batches);
    Wide sums[V] = {};
    for (int64_t m = 0; m < shape.multiplier; ++m) {
      int64_t output = channel * shape.multiplier + m, tap = 0;
      for (int64_t a = 0; a < shape.window[0]; ++a)
        for (int64_t b = 0; b < shape.window[1]; ++b) {
          int64_t d = shape.window_at(0, j.at[0], a), h = shape.window_at(1, j.at[1], b);
          if (d < 0 || h < 0) {
            tap += shape.window[2];
            continue;
          }
          for (int64_t c = 0; c < shape.window[2]; ++c, ++tap) {
            int64_t w = shape.window_at(2, j.at[2], c);
            if (w < 0) continue;
            auto values = load<V>(dy + shape.y_index(sequence, output, (d * shape.out[1] + h) * shape.out[2] + w));
            auto factors = load<V>(weight + shape.weight_index(group, output, tap));
            for (int v = 0; v < V; ++v) sums[v] += Wide(factors.lane[v]) * Wide(values.lane[v]);
          }
        }
    }
    Vector<T, V> dx;
    for (int v = 0; v < V; ++v) dx.lane[v] = T(sums[v]);
    return dx;
  }

  // Adds what position i of dy gives to `count` elements of dweight from `first` on, of V neighboring channels.
  template <int V, int count>
  BARACUDA_HD void add_dweight(const Wide (&dy)[V], int64_t sequence, int64_t output, PlanePosition i, int64_t first,
                               Wide (&sums)[count][V]) const {
    PlanePosition k(first, shape.window);
    int64_t channel = quotient(output, shape.multiplier), taps = shape.taps();
    const T* from = x + shape.x_index(sequence, channel, 0);
    int64_t apart = shape.channels_last ? shape.channels : 1;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int t = 0; t < count; ++t) {
      int64_t d = shape.read(0, i.at[0], k.at[0]), h = shape.read(1, i.at[1], k.at[1]),
              w = shape.read(2, i.at[2], k.at[2]);
      if (first + t < taps && shape.is_inside(0, d) && shape.is_inside(1, h) && shape.is_inside(2, w)) {
        auto values = load<V>(from + ((d * shape.in[1] + h) * shape.in[2] + w) * apart);
        for (int v = 0; v < V; ++v) sums[t][v] += dy[v] * Wide(values.lane[v]);
      }
      if (++k.at[2] == shape.window[2]) {
        k.at[2] = 0;
        if (++k.at[1] == shape.window[1]) k.at[1] = 0, ++k.at[0];
      }
    }
  }
};

}  // namespace baracuda
