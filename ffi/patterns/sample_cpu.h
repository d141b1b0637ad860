// The sample pattern on CPU threads: the elements and weights of some positions are found once, and used in all
// channels. Where images fit into a core's cache and have enough channels and positions, some channels of an image are
// transposed, so that an element of all of them is a vector. Otherwise, for images of the dtype that is computed in,
// the loop over positions vectorizes, with gathers: an element outside is one inside of which no bit is left.
#pragma once

#include <algorithm>
#include <memory>

#include "sample.h"
#include "square_cpu.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t sample_points = 64, sample_channels = 64;
// Where gathers read the planes: as many points as leave room in the first-level cache for what they read of a plane,
// so that the next tile seldom has to read the same lines again.
constexpr int64_t gathered_points(int taps) { return std::clamp(1024 / taps, 64, 256); }

// Calls body(batch, first, last, channel, end) for points and channels.
template <int64_t points = sample_points, class Body>
void for_sampled(const Executor& executor, const SampleShape& shape, int64_t width, int64_t taps, const Body& body) {
  int64_t tiles = ceil_div(shape.points, points);
  int64_t chunks = std::max<int64_t>(1, ceil_div(shape.channels, width));
  int64_t cost = points * (std::min(width, shape.channels) + 8) * taps;
  parallel_for(executor, shape.batches * tiles * chunks, cost, [&](int64_t task) {
    int64_t chunk = task % chunks, tile = task / chunks % tiles, batch = task / chunks / tiles;
    int64_t first = tile * points, channel = chunk * width;
    body(batch, first, std::min(shape.points, first + points), channel, std::min(shape.channels, channel + width));
  });
}

// The points [first, last), at most as many as a tile has.
template <class Functor>
struct SampledTile {
  using Sum = typename Functor::Sum;
  using Bits = std::conditional_t<sizeof(Sum) == 8, uint64_t, uint32_t>;
  static constexpr int taps = Functor::taps;
  static constexpr int64_t points = gathered_points(taps);
  int64_t count;
  int32_t index[taps][points];  // in range
  Bits inside[taps][points];    // all bits, or none
  Bits outside[Functor::has_fill ? taps : 1][points];
  Sum weight[taps][points];

  SampledTile(const Functor& functor, const SampleShape& shape, const Sum* positions, int64_t batch, int64_t first,
              int64_t last)
      : count(last - first) {
    for_known(functor, [&](const auto& known) __attribute__((always_inline)) {
      const auto own = known;
      const Bits fill = bit_cast<Bits>(functor.fill());
      BARACUDA_INDEPENDENT
      for (int64_t p = 0; p < count; ++p) {
        auto found = own.at(own.read(positions, batch, first + p, shape.points).of);
#pragma GCC unroll 64
        for (int t = 0; t < taps; ++t) {
          int32_t at = found.index[t];
          index[t][p] = at < 0 ? 0 : at, inside[t][p] = at < 0 ? Bits(0) : ~Bits(0), weight[t][p] = found.weight[t];
          if constexpr (Functor::has_fill) outside[t][p] = at == no_element ? fill : Bits(0);
        }
      }
    });
  }

  // to[p] = the sum of the taps [first, first + number), and of what is there already unless these are the first.
  template <int number>
  void sum_taps(int first, const Sum* x, Sum* to) const {
    BARACUDA_INDEPENDENT
    for (int64_t p = 0; p < count; ++p) {
      Sum sum = first == 0 ? Sum(0) : to[p];
#pragma GCC unroll 4
      for (int k = 0; k < number; ++k) {
        int t = first + k;
        Bits bits = bit_cast<Bits>(x[index[t][p]]) & inside[t][p];
        if constexpr (Functor::has_fill) bits |= outside[t][p];
        Sum term = bit_cast<Sum>(bits) * weight[t][p];
        sum = t == 0 ? term : sum + term;
      }
      to[p] = sum;
    }
  }
};

// The elements and weights of the points of a tile, by tap. `index` counts elements; after the last one there is one of
// zeros, and one that has the fill value.
template <class Functor>
struct SampledPoints {
  using Sum = typename Functor::Sum;
  static constexpr int taps = Functor::taps;
  int32_t index[taps][sample_points];
  Sum weight[taps][sample_points];

  void find(const Functor& functor, const SampleShape& shape, const Sum* positions, int64_t batch, int64_t first,
            int64_t last) {
    for_known(functor, [&](const auto& known) __attribute__((always_inline)) {
      const auto own = known;
      int32_t zeros = int32_t(shape.elements), fill = zeros + 1;
      int64_t points = shape.points;
      BARACUDA_INDEPENDENT
      for (int64_t p = 0; p < last - first; ++p) {
        auto found = own.at(own.read(positions, batch, first + p, points).of);
#pragma GCC unroll 64
        for (int t = 0; t < taps; ++t) {
          int32_t at = found.index[t];
          index[t][p] = at >= 0 ? at : at == no_element ? fill : zeros;
          weight[t][p] = found.weight[t];
        }
      }
    });
  }
};

// C channels of an image: those of an element are next to each other, so that its vectors are read as they are.
template <int C, class Sum>
struct SamplePanel {
  static constexpr int bytes = C * sizeof(Sum);
  static constexpr int N = (bytes < vector_bytes ? bytes : vector_bytes) / int(sizeof(Sum)), vectors = C / N;
  typedef Sum Lanes __attribute__((vector_size(N * sizeof(Sum))));

  template <class T>
  static void read(const T* x, int64_t elements, Sum fill, Sum* panel) {
    const Sum* rows[C] = {};
    if constexpr (std::is_same_v<T, Sum>) {
      for (int c = 0; c < C; ++c) rows[c] = x + c * elements;
      turn(rows, C, 0, elements, panel, C);
    } else {
      constexpr int64_t some = 128;
      Sum wide[C][some];
      for (int c = 0; c < C; ++c) rows[c] = wide[c];
      for (int64_t first = 0; first < elements; first += some) {
        int64_t count = std::min(some, elements - first);
        for (int c = 0; c < C; ++c)
          for (int64_t i = 0; i < count; ++i) wide[c][i] = Sum(x[c * elements + first + i]);
        turn(rows, C, 0, count, panel + first * C, C);
      }
    }
    std::fill_n(panel + elements * C, C, Sum(0));
    std::fill_n(panel + (elements + 1) * C, C, fill);
  }

  // The points of a tile.
  template <class Functor, class T>
  static void sum(const SampledPoints<Functor>& found, const Sum* panel, int64_t count, int64_t points, T* y) {
    constexpr int taps = Functor::taps;
    alignas(64) Sum sums[sample_points][C];
    for (int64_t p = 0; p < count; ++p) {
      Lanes sum[vectors];
#pragma GCC unroll 64
      for (int t = 0; t < taps; ++t) {
        const Sum* from = panel + int64_t(found.index[t][p]) * C;
        Sum weight = found.weight[t][p];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          Lanes value;
          memcpy(&value, from + v * N, sizeof(value));
          sum[v] = t == 0 ? value * weight : sum[v] + value * weight;
        }
      }
      memcpy(sums[p], sum, sizeof(sum));
    }
    const Sum* rows[sample_points] = {};
    for (int64_t p = 0; p < count; ++p) rows[p] = sums[p];
    if constexpr (std::is_same_v<T, Sum>) {
      turn(rows, count, 0, C, y, points);
    } else {
      Sum wide[C][sample_points];
      turn(rows, count, 0, C, wide[0], sample_points);
      for (int c = 0; c < C; ++c)
        for (int64_t p = 0; p < count; ++p) y[c * points + p] = T(wide[c][p]);
    }
  }
};

// How many panels of C channels a task has, or 0, where it is better to read the planes: they are too large for the
// cache, or too few for all threads, or hardly read.
template <class Sum>
int64_t sample_panels(const Executor& executor, const SampleShape& shape, int64_t C, int64_t taps) {
  constexpr int64_t some = 1 << 19, most = int64_t(8) << 20;  // bytes
  int64_t bytes = (shape.elements + 2) * C * sizeof(Sum), chunks = ceil_div(shape.channels, C);
  if (shape.channels < C || bytes > most || shape.points * taps * shape.channels < 8 * shape.elements * chunks)
    return 0;
  if (executor.threads > 1 && shape.batches * chunks < executor.threads) return 0;
  int64_t tasks = 4 * executor.threads;  // or more
  return std::max<int64_t>(1, std::min({chunks, some / bytes, shape.batches * chunks / tasks}));
}

template <int C, class Functor, class Sum, class T>
void sample_by_panels(const Executor& executor, const Functor& functor, const SampleShape& shape, int64_t panels,
                      const T* x, const Sum* positions, T* y) {
  using Panel = SamplePanel<C, Sum>;
  int64_t chunks = ceil_div(shape.channels, C), groups = ceil_div(chunks, panels);
  int64_t size = (shape.elements + 2) * C, cost = panels * C * (shape.elements + shape.points * Functor::taps / 4);
  parallel_for(executor, shape.batches * groups, cost, [&](int64_t task) {
    int64_t batch = task / groups, chunk = task % groups * panels, end = std::min(chunks, chunk + panels);
    std::unique_ptr<Sum[]> memory(new Sum[size_t((end - chunk) * size)]);
    // The last panel has channels of the one before, where there are fewer left.
    auto plane = [&](int64_t i) { return batch * shape.channels + std::min(i * C, shape.channels - C); };
    for (int64_t i = chunk; i < end; ++i)
      Panel::read(x + plane(i) * shape.elements, shape.elements, functor.fill(), memory.get() + (i - chunk) * size);
    SampledPoints<Functor> found;
    for (int64_t first = 0; first < shape.points; first += sample_points) {
      int64_t last = std::min(shape.points, first + sample_points);
      found.find(functor, shape, positions, batch, first, last);
      for (int64_t i = chunk; i < end; ++i)
        Panel::sum(found, memory.get() + (i - chunk) * size, last - first, shape.points,
                   y + plane(i) * shape.points + first);
    }
  });
}

// By panels, if that is better. They are transposed in vectors of 32 bytes.
#ifdef __AVX2__
constexpr bool has_panels = true;
#else
constexpr bool has_panels = false;
#endif
template <class Functor, class Sum, class T>
bool sampled_by_panels(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
                       const Sum* positions, T* y) {
  if constexpr (!has_panels) return false;
  auto by = [&](auto C) {
    int64_t panels = sample_panels<Sum>(executor, shape, C.value, Functor::taps);
    if (panels > 0) sample_by_panels<C.value>(executor, functor, shape, panels, x, positions, y);
    return panels > 0;
  };
  return by(std::integral_constant<int, 64 / sizeof(Sum)>()) || by(std::integral_constant<int, 4>());
}

}  // namespace internal

template <class Functor, class Sum>
Status sample(const Executor& executor, const Functor& functor, const SampleShape& shape, const Sum* x,
              const Sum* positions, Sum* y) {
  constexpr int taps = Functor::taps, together = taps < 4 ? taps : 4;
  using Tile = internal::SampledTile<Functor>;
  if (internal::sampled_by_panels(executor, functor, shape, x, positions, y)) return {};
  auto of_tile = [&](int64_t batch, int64_t first, int64_t last, int64_t channel, int64_t end) {
    const Tile tile(functor, shape, positions, batch, first, last);
    for (; channel < end; ++channel) {
      const Sum* from = x + (batch * shape.channels + channel) * shape.elements;
      Sum sum[Tile::points];
      tile.template sum_taps<together>(0, from, sum);
      for (int t = together; t < taps; t += together) tile.template sum_taps<together>(t, from, sum);
      std::copy_n(sum, tile.count, y + (batch * shape.channels + channel) * shape.points + first);
    }
  };
  internal::for_sampled<Tile::points>(executor, shape, internal::sample_channels, taps, of_tile);
  return {};
}

template <class Functor, class Sum, class T>
Status sample(const Executor& executor, const Functor& functor, const SampleShape& shape, const T* x,
              const Sum* positions, T* y) {
  constexpr int taps = Functor::taps;
  const Sum fill = functor.fill();
  if (internal::sampled_by_panels(executor, functor, shape, x, positions, y)) return {};
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
