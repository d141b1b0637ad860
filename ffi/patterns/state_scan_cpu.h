// The state scan pattern on CPU threads. B and C are turned, so that states are lanes. Forward a task has a channel of
// a sequence; backward a few channels with the same B and C, whose gradients it adds.
#pragma once

#include <algorithm>
#include <vector>

#include "../kernels/selective_scan.h"
#include "executor.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int selective_channels = 16;

// x [sequences * shared, states, length] as [.., length, states], widened.
template <class T>
std::vector<Accumulator<T>> by_position(const Executor& executor, const SelectiveShape& shape, const T* x) {
  std::vector<Accumulator<T>> turned(shape.groups * shape.batches * shape.shared * shape.length * shape.states);
  parallel_for(executor, shape.groups * shape.batches * shape.shared, shape.length * shape.states, [&](int64_t s) {
    const T* from = x + s * shape.length * shape.states;
    Accumulator<T>* to = turned.data() + s * shape.length * shape.states;
    for (int64_t n = 0; n < shape.states; ++n)
      for (int64_t l = 0; l < shape.length; ++l) to[l * shape.states + n] = Accumulator<T>(from[n * shape.length + l]);
  });
  return turned;
}

template <class Wide>
Wide lane_sum(const Wide* x, int64_t count) {
  Wide total = 0;
  for (int64_t n = 0; n < count; ++n) total += x[n];
  return total;
}

// h = e^(d a) h + x b; what is kept of h before goes to `kept`.
template <class Wide>
void advance(Wide* h, Wide* kept, const Wide* rates, const Wide* b, Wide step, Wide x, bool is_start, int64_t count) {
  if (is_start) std::fill_n(h, count, Wide(0));
  BARACUDA_INDEPENDENT
  for (int64_t n = 0; n < count; ++n) {
    kept[n] = is_start ? Wide(0) : Decay<Wide>::factor(step * rates[n]) * h[n];
    h[n] = kept[n] + x * b[n];
  }
}

}  // namespace internal

// y; where they are not null, the last state and the states before each chunk.
template <class T>
Status selective_scan(const Executor& executor, const SelectiveScan<T>& scan, T* y, Accumulator<T>* last,
                      Accumulator<T>* states) {
  using Wide = Accumulator<T>;
  using namespace internal;
  const SelectiveShape& shape = scan.shape;
  const int64_t count = shape.states, length = shape.length;
  auto b = by_position(executor, shape, scan.b), c = by_position(executor, shape, scan.c);
  parallel_for(executor, shape.rows(), length * count * 16, [&](int64_t row) {
    int64_t channel = scan.channel(row), shared = scan.shared(row), sequence = scan.sequence(row);
    std::vector<Wide> h(scan.state + row * count, scan.state + (row + 1) * count), kept(count), terms(count);
    for (int64_t l = 0; l < length; ++l) {
      if (states && l % selective_chunk == 0)
        std::copy_n(h.data(), count, states + (row * shape.chunks() + l / selective_chunk) * count);
      Wide step = scan.step(Wide(scan.dt[row * length + l]) + scan.bias[channel]), u = Wide(scan.u[row * length + l]);
      const Wide *of_b = b.data() + (shared * length + l) * count, *of_c = c.data() + (shared * length + l) * count;
      advance(h.data(), kept.data(), scan.a + channel * count, of_b, step, step * u, scan.is_start(sequence, l), count);
      for (int64_t n = 0; n < count; ++n) terms[n] = of_c[n] * h[n];
      Wide value = lane_sum(terms.data(), count) + scan.skip[channel] * u;
      if (scan.z) value *= scan.gate(Wide(scan.z[row * length + l]));
      y[row * length + l] = T(value);
    }
    if (last) std::copy_n(h.data(), count, last + row * count);
  });
  return {};
}

template <class T>
Status selective_scan_backward(const Executor& executor, const SelectiveScan<T>& scan, const SelectiveGradients<T>& g) {
  using Wide = Accumulator<T>;
  using namespace internal;
  const SelectiveShape& shape = scan.shape;
  const int64_t count = shape.states, length = shape.length, each = shape.channels_each();
  const int64_t sequences = shape.groups * shape.batches,
                tiles = ceil_div(std::max<int64_t>(each, 1), selective_channels);
  const int64_t size = length * count;
  auto b = by_position(executor, shape, scan.b), c = by_position(executor, shape, scan.c);
  // Sums over the channels of a tile, [.., tiles, length, states], and over the positions of a row: of A, D and the
  // bias.
  std::vector<Wide> db(sequences * shape.shared * tiles * size), dc(db.size()), of_rows(shape.rows() * (count + 2));
  parallel_for(executor, sequences * shape.shared * tiles, selective_channels * size * 48, [&](int64_t task) {
    int64_t shared = task / tiles, tile = task - shared * tiles, sequence = shared / shape.shared;
    int64_t first = sequence * shape.channels + (shared - sequence * shape.shared) * each;
    std::vector<Wide> h(count), carry(count), sum(count), kept(selective_chunk * count), after(kept.size());
    Wide steps[selective_chunk], inputs[selective_chunk], raws[selective_chunk];
    for (int64_t k = tile * selective_channels; k < std::min(each, (tile + 1) * selective_channels); ++k) {
      int64_t row = first + k, channel = scan.channel(row);
      const Wide* rates = scan.a + channel * count;
      Wide *sums = of_rows.data() + row * (count + 2), of_skip = 0, of_bias = 0;
      std::copy_n(g.dfinal + row * count, count, carry.data());
      for (int64_t chunk = shape.chunks(); chunk-- > 0;) {
        int64_t begin = chunk * selective_chunk, end = std::min(begin + selective_chunk, length);
        std::copy_n(g.states + (row * shape.chunks() + chunk) * count, count, h.data());
        for (int64_t l = begin; l < end; ++l) {
          int64_t i = l - begin;
          raws[i] = Wide(scan.dt[row * length + l]) + scan.bias[channel];
          steps[i] = scan.step(raws[i]), inputs[i] = Wide(scan.u[row * length + l]);
          advance(h.data(), kept.data() + i * count, rates, b.data() + (shared * length + l) * count, steps[i],
                  steps[i] * inputs[i], scan.is_start(sequence, l), count);
          std::copy_n(h.data(), count, after.data() + i * count);
        }
        for (int64_t l = end; l-- > begin;) {
          int64_t i = l - begin;
          const Wide *of_b = b.data() + (shared * length + l) * count, *of_c = c.data() + (shared * length + l) * count;
          const Wide *before = kept.data() + i * count, *now = after.data() + i * count;
          Wide dy = Wide(g.dy[row * length + l]), u = inputs[i], step = steps[i];
          if (scan.z) {
            Wide z = Wide(scan.z[row * length + l]);
            for (int64_t n = 0; n < count; ++n) sum[n] = of_c[n] * now[n];
            g.dz[row * length + l] =
                T(dy * (lane_sum(sum.data(), count) + scan.skip[channel] * u) * scan.gate_slope(z));
            dy *= scan.gate(z);
          }
          Wide *to_b = db.data() + task * size + l * count, *to_c = dc.data() + task * size + l * count;
          Wide of_step = 0, of_input = 0, x = step * u;
          bool is_start = scan.is_start(sequence, l);
          for (int64_t n = 0; n < count; ++n) {
            StateGradient<Wide> s(before[n], of_b[n], of_c[n], dy, carry[n]);
            to_c[n] += dy * now[n], to_b[n] += s.dh * x;
            sums[n] += step * s.decayed;
            of_step += rates[n] * s.decayed, of_input += s.of_input;
            carry[n] = is_start ? Wide(0) : s.dh * Decay<Wide>::factor(step * rates[n]);
          }
          Wide raw = (of_step + u * of_input) * scan.step_slope(raws[i]);
          g.ddt[row * length + l] = T(raw), of_bias += raw;
          g.du[row * length + l] = T(step * of_input + dy * scan.skip[channel]), of_skip += dy * u;
        }
      }
      sums[count] = of_skip, sums[count + 1] = of_bias;
      std::copy_n(carry.data(), count, g.dstate + row * count);
    }
  });
  parallel_for(executor, sequences * shape.shared, 2 * size * tiles, [&](int64_t s) {
    for (int64_t n = 0; n < count; ++n)
      for (int64_t l = 0; l < length; ++l) {
        Wide of_b = 0, of_c = 0;
        for (int64_t tile = 0; tile < tiles; ++tile) {
          int64_t at = (s * tiles + tile) * size + l * count + n;
          of_b += db[at], of_c += dc[at];
        }
        g.db[s * size + n * length + l] = T(of_b), g.dc[s * size + n * length + l] = T(of_c);
      }
  });
  parallel_for(executor, shape.groups * shape.channels, shape.batches * (count + 2), [&](int64_t channel) {
    int64_t group = channel / shape.channels, within = channel - group * shape.channels;
    for (int64_t n = 0; n < count + 2; ++n) {
      Wide total = 0;
      for (int64_t k = 0; k < shape.batches; ++k)
        total += of_rows[((group * shape.batches + k) * shape.channels + within) * (count + 2) + n];
      (n < count ? g.da[channel * count + n] : n == count ? g.dskip[channel] : g.dbias[channel]) = total;
    }
  });
  return {};
}

}  // namespace baracuda
