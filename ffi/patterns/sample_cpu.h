// The sample pattern on CPU threads: the elements and weights of some positions are found once, and used in all
// channels.
#pragma once

#include <algorithm>

#include "sample.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t sample_points = 64, sample_channels = 64;

// Calls body(batch, first, last, channel, end) for points and channels.
template <class Body>
void for_sampled(const Executor& executor, const SampleShape& shape, int64_t width, int64_t taps, const Body& body) {
  int64_t tiles = ceil_div(shape.points, sample_points);
  int64_t chunks = std::max<int64_t>(1, ceil_div(shape.channels, width));
  int64_t cost = sample_points * (std::min(width, shape.channels) + 8) * taps;
  parallel_for(executor, shape.batches * tiles * chunks, cost, [&](int64_t task) {
    int64_t chunk = task % chunks, tile = task / chunks % tiles, batch = task / chunks / tiles;
    int64_t first = tile * sample_points, channel = chunk * width;
    body(batch, first, std::min(shape.points, first + sample_points), channel,
         std::min(shape.channels, channel + width));
  });
}

}  // namespace internal

template <class Functor, class Sum, class T>
Status sample(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
              const Sum* positions, T* y) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill();
  auto of_tile = [&](int64_t batch, int64_t first, int64_t last, int64_t channel, int64_t end) {
    typename Functor::Result found[internal::sample_points];
    for (int64_t p = first; p < last; ++p)
      found[p - first] = functor.at(functor.read(positions, batch, p, shape.points).of);
    for (; channel < end; ++channel) {
      const T* from = x + (batch * shape.channels + channel) * shape.elements;
      T* to = y + (batch * shape.channels + channel) * shape.points;
      for (int64_t p = first; p < last; ++p) {
        const auto& point = found[p - first];
        Sum sum = sampled<Sum>(from, point.index[0], fill) * point.weight[0];
        for (int t = 1; t < taps; ++t) sum += sampled<Sum>(from, point.index[t], fill) * point.weight[t];
        to[p] = T(sum);
      }
    }
  };
  internal::for_sampled(executor, shape, internal::sample_channels, taps, of_tile);
  return {};
}

template <class Functor, class Sum, class T>
Status sample_tangent(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
                      const Sum* positions, const T* dx, const Sum* moved, T* dy) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill();
  auto of_tile = [&](int64_t batch, int64_t first, int64_t last, int64_t channel, int64_t end) {
    typename Functor::Result found[internal::sample_points];
    Sum slope[internal::sample_points][taps];
    for (int64_t p = first; p < last; ++p) {
      auto position = functor.read(positions, batch, p, shape.points);
      found[p - first] = functor.at(position.of);
      functor.tangent(position.of, functor.read(moved, batch, p, shape.points).of, slope[p - first]);
    }
    for (; channel < end; ++channel) {
      int64_t plane = batch * shape.channels + channel;
      const T *from = x + plane * shape.elements, *from_tangent = dx + plane * shape.elements;
      for (int64_t p = first; p < last; ++p) {
        const auto& point = found[p - first];
        Sum sum = 0;
        for (int t = 0; t < taps; ++t) {
          sum += sampled<Sum>(from_tangent, point.index[t], Sum(0)) * point.weight[t];
          if constexpr (Functor::has_slope) sum += sampled<Sum>(from, point.index[t], fill) * slope[p - first][t];
        }
        dy[plane * shape.points + p] = T(sum);
      }
    }
  };
  internal::for_sampled(executor, shape, internal::sample_channels, 2 * taps, of_tile);
  return {};
}

// The cotangent of the positions.
template <class Functor, class Sum, class T>
Status sample_backward(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
                       const Sum* positions, const T* dy, Sum* moved) {
  constexpr int axes = Functor::axes, taps = Functor::taps;
  if constexpr (!Functor::has_slope) {
    std::fill_n(moved, shape.batches * shape.points * axes, Sum(0));
    return {};
  }
  const Sum fill = functor.fill();
  auto of_tile = [&](int64_t batch, int64_t first, int64_t last, int64_t, int64_t) {
    typename Functor::Result found[internal::sample_points];
    Sum weight[internal::sample_points][taps] = {};
    for (int64_t p = first; p < last; ++p)
      found[p - first] = functor.at(functor.read(positions, batch, p, shape.points).of);
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      const T* from = x + (batch * shape.channels + channel) * shape.elements;
      const T* of_result = dy + (batch * shape.channels + channel) * shape.points;
      for (int64_t p = first; p < last; ++p)
        for (int t = 0; t < taps; ++t)
          weight[p - first][t] += Sum(of_result[p]) * sampled<Sum>(from, found[p - first].index[t], fill);
    }
    for (int64_t p = first; p < last; ++p) {
      typename Functor::Position of_position;
      functor.backward(functor.read(positions, batch, p, shape.points).of, weight[p - first], of_position.of);
      functor.write(moved, batch, p, shape.points, of_position);
    }
  };
  internal::for_sampled(executor, shape, std::max<int64_t>(shape.channels, 1), taps, of_tile);
  return {};
}

}  // namespace baracuda
