// The stencil pattern on CPU threads. With the channels first a task has a row, which is widened once; with the
// channels last it has neighboring channels, which are lanes. Sums for weights are added by position, and then by
// batch.
#pragma once

#include <algorithm>
#include <vector>

#include "../kernels/causal_conv.h"
#include "executor.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int stencil_lanes = 64;

// How many elements before each one are of its segment: [sequences, length]; nothing where there are no segments.
template <class T>
std::vector<int32_t> elements_before(const Executor& executor, const CausalConv<T>& conv) {
  const StencilShape& shape = conv.shape;
  if (!conv.starts) return {};
  std::vector<int32_t> count(shape.sequences() * shape.length);
  parallel_for(executor, shape.sequences(), shape.length, [&](int64_t s) {
    int32_t since = most_taps;
    for (int64_t l = 0; l < shape.length; ++l) {
      since = conv.is_start(s, l) ? 0 : std::min(since + 1, most_taps);
      count[s * shape.length + l] = since;
    }
  });
  return count;
}

// to[i] += factor * from[i], where `before` says that what is so many elements before is of the segment.
template <class Wide>
void add_lag(Wide* to, Wide factor, const Wide* from, const int32_t* before, int lag, int64_t count) {
  if (before && lag > 0) {
    BARACUDA_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) to[i] += factor * value_if(before[i] >= lag, from[i]);
  } else {
    BARACUDA_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
  }
}

// The sum of a[i] b[i], by lanes in a fixed order.
template <class Wide>
Wide dot(const Wide* a, const Wide* b, const int32_t* before, int lag, int64_t count) {
  constexpr int lanes = 16;
  Wide sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int k = 0; k < lanes; ++k)
      sums[k] += a[i + k] * (before ? value_if(before[i + k] >= lag, b[i + k]) : b[i + k]);
  for (int k = 0; i < count; ++i, ++k) sums[k] += a[i] * (before ? value_if(before[i] >= lag, b[i]) : b[i]);
  Wide total = 0;
  for (int k = 0; k < lanes; ++k) total += sums[k];
  return total;
}

// One row with the channels first: the state and x, widened, and z.
template <class T>
struct StencilRow {
  using Wide = Accumulator<T>;
  const CausalConv<T>& conv;
  int64_t row, channel, history, length;
  const int32_t* before;
  std::vector<Wide> x, z;

  StencilRow(const CausalConv<T>& conv, int64_t row, const std::vector<int32_t>& all_before)
      : conv(conv),
        row(row),
        channel(conv.channel(row)),
        history(conv.shape.width - 1),
        length(conv.shape.length),
        before(all_before.empty() ? nullptr : all_before.data() + row / conv.shape.channels * length),
        x(history + length),
        z(length, Wide(conv.bias[channel])) {
    for (int64_t i = 0; i < history; ++i) x[i] = conv.before(row, i - history);
    const T* from = conv.x + row * length;
    Wide* to = x.data() + history;
    BARACUDA_INDEPENDENT
    for (int64_t i = 0; i < length; ++i) to[i] = Wide(from[i]);
    for (int lag = 0; lag <= history; ++lag)
      add_lag(z.data(), conv.factor(channel, lag), x.data() + history - lag, before, lag, length);
  }
};

// Neighboring channels with the channels last: the weights of a lag in lanes.
template <class T>
struct StencilChannels {
  using Wide = Accumulator<T>;
  const CausalConv<T>& conv;
  int64_t group, first;
  int count;
  Wide factors[most_taps][stencil_lanes], bias[stencil_lanes];

  StencilChannels(const CausalConv<T>& conv, int64_t group, int64_t first)
      : conv(conv),
        group(group),
        first(first),
        count(int(std::min<int64_t>(stencil_lanes, conv.shape.channels - first))) {
    int64_t channel = group * conv.shape.channels + first;
    for (int c = 0; c < count; ++c) {
      bias[c] = Wide(conv.bias[channel + c]);
      for (int lag = 0; lag < conv.shape.width; ++lag) factors[lag][c] = conv.factor(channel + c, lag);
    }
  }

  // The elements at a position of a sequence, that may be one of the state.
  void load(int64_t sequence, int64_t position, Wide* to) const {
    const StencilShape& shape = conv.shape;
    if (position < 0) {
      for (int c = 0; c < count; ++c) to[c] = conv.before(sequence * shape.channels + first + c, position);
      return;
    }
    const T* from = conv.x + (sequence * shape.length + position) * shape.channels + first;
    BARACUDA_INDEPENDENT
    for (int c = 0; c < count; ++c) to[c] = Wide(from[c]);
  }

  void convolve(const Wide (*window)[stencil_lanes], int64_t position, int before, Wide* z) const {
    std::copy_n(bias, count, z);
    for (int lag = 0; lag < std::min(conv.shape.width, before + 1); ++lag) {
      const Wide *x = window[(position - lag) & (most_taps - 1)], *c_of = factors[lag];
      BARACUDA_INDEPENDENT
      for (int c = 0; c < count; ++c) z[c] += c_of[c] * x[c];
    }
  }
};

}  // namespace internal

template <class T>
Status stencil(const Executor& executor, const CausalConv<T>& conv, T* y) {
  using Wide = Accumulator<T>;
  using namespace internal;
  const StencilShape& shape = conv.shape;
  auto all_before = elements_before(executor, conv);
  if (!shape.channels_last) {
    parallel_for(executor, shape.rows(), shape.length * (shape.width + 8), [&](int64_t row) {
      StencilRow<T> r(conv, row, all_before);
      T* to = y + row * shape.length;
      const Wide* z = r.z.data();
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < shape.length; ++i) to[i] = T(conv.activated(z[i]));
    });
    return {};
  }
  constexpr int64_t chunk = 256;
  int64_t tiles = ceil_div(shape.channels, stencil_lanes), chunks = ceil_div(shape.length, chunk);
  parallel_for(
      executor, shape.sequences() * chunks * tiles, chunk * stencil_lanes * (shape.width + 8), [&](int64_t task) {
        int64_t tile = task % tiles, sequence = task / tiles / chunks, begin = task / tiles % chunks * chunk;
        StencilChannels<T> channels(conv, sequence / shape.batches, tile * stencil_lanes);
        Wide window[most_taps][stencil_lanes], z[stencil_lanes];
        for (int64_t l = begin - shape.width + 1; l < begin; ++l)
          channels.load(sequence, l, window[l & (most_taps - 1)]);
        for (int64_t l = begin; l < std::min(begin + chunk, shape.length); ++l) {
          channels.load(sequence, l, window[l & (most_taps - 1)]);
          channels.convolve(window, l, all_before.empty() ? most_taps : all_before[sequence * shape.length + l], z);
          T* to = y + (sequence * shape.length + l) * shape.channels + channels.first;
          BARACUDA_INDEPENDENT
          for (int c = 0; c < channels.count; ++c) to[c] = T(conv.activated(z[c]));
        }
      });
  return {};
}

template <class T>
Status stencil_backward(const Executor& executor, const CausalConv<T>& conv, const T* dy, T* dx, T* dweight, T* dbias,
                        T* dstate) {
  using Wide = Accumulator<T>;
  using namespace internal;
  const StencilShape& shape = conv.shape;
  const int history = shape.width - 1;
  auto all_before = elements_before(executor, conv);
  if (!shape.channels_last) {
    std::vector<Wide> of_rows(shape.rows() * (shape.width + 1));
    parallel_for(executor, shape.rows(), shape.length * (3 * shape.width + 16), [&](int64_t row) {
      StencilRow<T> r(conv, row, all_before);
      std::vector<Wide> dz(shape.length), d(history + shape.length);
      const T* from = dy + row * shape.length;
      Wide *of_z = dz.data(), *z = r.z.data();
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < shape.length; ++i) of_z[i] = conv.slope(z[i], Wide(from[i]));
      Wide *sums = of_rows.data() + row * (shape.width + 1), one = 1;
      for (int lag = 0; lag <= history; ++lag) {
        const Wide* x = r.x.data() + history - lag;
        const int32_t* before = lag ? r.before : nullptr;
        sums[lag] = dot(of_z, x, before, lag, shape.length);
        Wide *to = d.data() + history - lag, factor = conv.factor(r.channel, lag);
        if (before) {
          BARACUDA_INDEPENDENT
          for (int64_t i = 0; i < shape.length; ++i) to[i] += value_if(before[i] >= lag, factor * of_z[i]);
        } else {
          BARACUDA_INDEPENDENT
          for (int64_t i = 0; i < shape.length; ++i) to[i] += factor * of_z[i];
        }
      }
      std::fill(z, z + shape.length, one);
      sums[shape.width] = dot(of_z, z, nullptr, 0, shape.length);
      T *to = dx + row * shape.length, *to_state = dstate + row * history;
      const Wide* of_x = d.data() + history;
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < shape.length; ++i) to[i] = T(of_x[i]);
      for (int i = 0; i < history; ++i) to_state[i] = T(d[i]);
    });
    parallel_for(executor, shape.groups * shape.channels, shape.batches * shape.width, [&](int64_t channel) {
      int64_t group = channel / shape.channels, c = channel - group * shape.channels;
      for (int lag = 0; lag <= shape.width; ++lag) {
        Wide total = 0;
        for (int64_t b = 0; b < shape.batches; ++b)
          total += of_rows[((group * shape.batches + b) * shape.channels + c) * (shape.width + 1) + lag];
        (lag == shape.width ? dbias[channel] : dweight[channel * shape.width + history - lag]) = T(total);
      }
    });
    return {};
  }
  int64_t tiles = ceil_div(shape.channels, stencil_lanes);
  parallel_for(executor, shape.groups * tiles, shape.batches * shape.length * stencil_lanes * (3 * shape.width + 16),
               [&](int64_t task) {
                 StencilChannels<T> channels(conv, task / tiles, task % tiles * stencil_lanes);
                 const int count = channels.count;
                 Wide window[most_taps][stencil_lanes], added[most_taps][stencil_lanes], z[stencil_lanes],
                     dz[stencil_lanes];
                 Wide sums[most_taps + 1][stencil_lanes] = {};
                 for (int64_t b = 0; b < shape.batches; ++b) {
                   int64_t sequence = channels.group * shape.batches + b;
                   // What is complete at position l is the element `history` before it.
                   auto write = [&](int64_t l) {
                     const Wide* d = added[l & (most_taps - 1)];
                     if (l < 0) {
                       for (int c = 0; c < count; ++c)
                         dstate[(sequence * shape.channels + channels.first + c) * history + history + l] = T(d[c]);
                       return;
                     }
                     T* to = dx + (sequence * shape.length + l) * shape.channels + channels.first;
                     BARACUDA_INDEPENDENT
                     for (int c = 0; c < count; ++c) to[c] = T(d[c]);
                   };
                   for (int64_t l = -history; l < 0; ++l) {
                     channels.load(sequence, l, window[l & (most_taps - 1)]);
                     std::fill_n(added[l & (most_taps - 1)], count, Wide(0));
                   }
                   for (int64_t l = 0; l < shape.length; ++l) {
                     int before = all_before.empty() ? most_taps : all_before[sequence * shape.length + l];
                     channels.load(sequence, l, window[l & (most_taps - 1)]);
                     channels.convolve(window, l, before, z);
                     const T* from = dy + (sequence * shape.length + l) * shape.channels + channels.first;
                     Wide* of_bias = sums[shape.width];
                     BARACUDA_INDEPENDENT
                     for (int c = 0; c < count; ++c) dz[c] = conv.slope(z[c], Wide(from[c]));
                     BARACUDA_INDEPENDENT
                     for (int c = 0; c < count; ++c) of_bias[c] += dz[c];
                     std::fill_n(added[l & (most_taps - 1)], count, Wide(0));
                     for (int lag = 0; lag < std::min(shape.width, before + 1); ++lag) {
                       const Wide *x = window[(l - lag) & (most_taps - 1)], *factors = channels.factors[lag];
                       Wide *to = added[(l - lag) & (most_taps - 1)], *of_lag = sums[lag];
                       BARACUDA_INDEPENDENT
                       for (int c = 0; c < count; ++c) of_lag[c] += dz[c] * x[c];
                       BARACUDA_INDEPENDENT
                       for (int c = 0; c < count; ++c) to[c] += factors[c] * dz[c];
                     }
                     write(l - history);
                   }
                   for (int64_t l = shape.length - history; l < shape.length; ++l) write(l);
                 }
                 int64_t channel = channels.group * shape.channels + channels.first;
                 for (int c = 0; c < count; ++c) {
                   dbias[channel + c] = T(sums[shape.width][c]);
                   for (int lag = 0; lag < shape.width; ++lag)
                     dweight[(channel + c) * shape.width + history - lag] = T(sums[lag][c]);
                 }
               });
  return {};
}

}  // namespace baracuda
