// The chunk scan pattern on CPU threads. Each state is kept, position by position; 16 of its rows are the lanes of
// vectors. Forward a task has such rows of a head in a sequence; backward it has some heads that share B and C, whose
// gradients it adds.
#pragma once

#include <algorithm>
#include <vector>

#include "../kernels/chunk_scan.h"
#include "executor.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int chunk_lanes = 16, chunk_heads = 4;

template <class Wide>
struct Lanes {
  Wide of[chunk_lanes];

  static Lanes all(Wide value) {
    Lanes lanes;
    std::fill_n(lanes.of, chunk_lanes, value);
    return lanes;
  }
  // In pairs, so that the order does not depend on the vectors' length.
  Wide sum() const {
    Lanes part = *this;
    for (int half = chunk_lanes / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) part.of[i] += part.of[i + half];
    return part.of[0];
  }
};

// The lanes of neighbors of which `count` are there, and 0 for others.
template <class T, class Wide = Accumulator<T>>
Lanes<Wide> lanes_of(const T* from, int count) {
  Lanes<Wide> lanes = Lanes<Wide>::all(0);
  for (int i = 0; i < count; ++i) lanes.of[i] = Wide(from[i]);
  return lanes;
}

// Up to 16 rows of a head's state: [columns] of lanes.
template <class T>
struct Rows {
  using Wide = Accumulator<T>;
  const ChunkScan<T>& scan;
  int64_t sequence, head, first;
  int count;
  int64_t columns = scan.shape.columns, which = head / scan.shape.heads_each();

  template <class From>
  void load(const From* state, std::vector<Lanes<Wide>>& h) const {
    for (int64_t n = 0; n < columns; ++n)
      for (int i = 0; i < chunk_lanes; ++i) h[n].of[i] = i < count ? Wide(state[(first + i) * columns + n]) : Wide(0);
  }
  template <class To>
  void store(const std::vector<Lanes<Wide>>& h, To* state) const {
    for (int64_t n = 0; n < columns; ++n)
      for (int i = 0; i < count; ++i) state[(first + i) * columns + n] = To(h[n].of[i]);
  }
  Lanes<Wide> of_x(const T* x, int64_t position) const {
    return lanes_of(x + scan.x_at(sequence, position, head) + first, count);
  }
  Lanes<Wide> skips() const {
    Lanes<Wide> lanes = Lanes<Wide>::all(0);
    for (int i = 0; i < count; ++i) lanes.of[i] = scan.skip_of(sequence, head, first + i);
    return lanes;
  }
  void load_columns(const T* x, int64_t position, Wide* to) const {
    const T* from = x + scan.b_at(sequence, position, which);
    for (int64_t n = 0; n < columns; ++n) to[n] = Wide(from[n]);
  }
  Wide raw(int64_t position) const {
    return Wide(scan.dt[scan.dt_at(sequence, position, head)]) + scan.bias[scan.head_of(sequence, head)];
  }
};

// after = factor h + x B, and the sum of C after; a start has no h.
template <class Wide>
Lanes<Wide> advance(const Lanes<Wide>* h, Lanes<Wide>* after, Wide factor, const Lanes<Wide>& x, const Wide* b,
                    const Wide* c, bool is_start, int64_t columns) {
  Lanes<Wide> y = Lanes<Wide>::all(0);
  for (int64_t n = 0; n < columns; ++n) {
    Wide of_b = b[n], of_c = c[n];
    const Wide* before = h[n].of;
    Wide* to = after[n].of;
    BARACUDA_INDEPENDENT
    for (int i = 0; i < chunk_lanes; ++i) {
      Wide now = (is_start ? Wide(0) : factor * before[i]) + x.of[i] * of_b;
      to[i] = now, y.of[i] += of_c * now;
    }
  }
  return y;
}

}  // namespace internal

// y; where they are not null, the last state and the states before each chunk.
template <class T>
Status chunk_scan(const Executor& executor, const ChunkScan<T>& scan, T* y, Accumulator<T>* last,
                  SavedState<T>* states) {
  using Wide = Accumulator<T>;
  using namespace internal;
  const ChunkShape& shape = scan.shape;
  const int64_t tiles = ceil_div(shape.rows, chunk_lanes), columns = shape.columns;
  parallel_for(executor, shape.sequences() * shape.heads * tiles, shape.length * columns * 8, [&](int64_t task) {
    int64_t of_head = task / tiles, sequence = of_head / shape.heads, head = of_head - sequence * shape.heads;
    int64_t first = (task - of_head * tiles) * chunk_lanes;
    Rows<T> rows{scan, sequence, head, first, int(std::min<int64_t>(chunk_lanes, shape.rows - first))};
    const Wide rate = Decay<Wide>::rate(scan.a[scan.head_of(sequence, head)]);
    const Lanes<Wide> skip = rows.skips();
    std::vector<Lanes<Wide>> h(columns);
    std::vector<Wide> b(columns), c(columns);
    rows.load(scan.state + scan.state_at(sequence, head), h);
    for (int64_t l = 0; l < shape.length; ++l) {
      if (states && l % scan_chunk<T> == 0) rows.store(h, states + scan.saved_at(sequence, head, l / scan_chunk<T>));
      Wide step = scan.step(rows.raw(l));
      Lanes<Wide> x = rows.of_x(scan.x, l), input;
      for (int i = 0; i < chunk_lanes; ++i) input.of[i] = step * x.of[i];
      rows.load_columns(scan.b, l, b.data()), rows.load_columns(scan.c, l, c.data());
      Lanes<Wide> value = advance(h.data(), h.data(), Decay<Wide>::factor(step * rate), input, b.data(), c.data(),
                                  scan.is_start(sequence, l), columns);
      int64_t at = scan.x_at(sequence, l, head) + first;
      for (int i = 0; i < rows.count; ++i) {
        Wide result = value.of[i] + skip.of[i] * x.of[i];
        y[at + i] = T(scan.z ? result * scan.gate(at + i) : result);
      }
    }
    if (last) rows.store(h, last + scan.state_at(sequence, head));
  });
  return {};
}

template <class T>
Status chunk_scan_backward(const Executor& executor, const ChunkScan<T>& scan, const ChunkGradients<T>& g) {
  using Wide = Accumulator<T>;
  using namespace internal;
  const ChunkShape& shape = scan.shape;
  const int64_t columns = shape.columns, each = shape.heads_each(), length = shape.length;
  const int64_t parts = ceil_div(std::max<int64_t>(each, 1), chunk_heads), all = shape.sequences() * shape.shared;
  // Sums over the heads of a part, [sequences, shared, parts, length, columns], and over the positions of a head: of A,
  // of the bias and of D.
  std::vector<Wide> db(all * parts * length * columns), dc(db.size());
  std::vector<Wide> of_heads(shape.sequences() * shape.heads * (2 + shape.rows));
  parallel_for(executor, all * parts, chunk_heads * length * columns * shape.rows * 4, [&](int64_t task) {
    int64_t of_all = task / parts, part = task - of_all * parts, sequence = of_all / shape.shared;
    int64_t which = of_all - sequence * shape.shared;
    std::vector<Lanes<Wide>> before(columns), carry(columns), after(scan_chunk<T> * columns);
    std::vector<Wide> b(columns), c(columns), of_steps(length);
    for (int64_t k = part * chunk_heads; k < std::min(each, (part + 1) * chunk_heads); ++k) {
      const int64_t head = which * each + k;
      const Wide a = scan.a[scan.head_of(sequence, head)], rate = Decay<Wide>::rate(a);
      Wide* sums = of_heads.data() + (sequence * shape.heads + head) * (2 + shape.rows);
      std::fill(of_steps.begin(), of_steps.end(), Wide(0));
      for (int64_t first = 0; first < shape.rows; first += chunk_lanes) {
        Rows<T> rows{scan, sequence, head, first, int(std::min<int64_t>(chunk_lanes, shape.rows - first))};
        const Lanes<Wide> skip = rows.skips();
        Lanes<Wide> of_skip = Lanes<Wide>::all(0);
        rows.load(g.dfinal + scan.state_at(sequence, head), carry);
        for (int64_t chunk = scan.chunks(); chunk-- > 0;) {
          int64_t begin = chunk * scan_chunk<T>, end = std::min<int64_t>(begin + scan_chunk<T>, length);
          rows.load(g.states + scan.saved_at(sequence, head, chunk), before);
          Lanes<Wide> values[scan_chunk<T>];
          for (int64_t l = begin; l < end; ++l) {
            Wide step = scan.step(rows.raw(l));
            Lanes<Wide> input = rows.of_x(scan.x, l);
            for (Wide& value : input.of) value *= step;
            rows.load_columns(scan.b, l, b.data()), rows.load_columns(scan.c, l, c.data());
            const Lanes<Wide>* h = l > begin ? after.data() + (l - 1 - begin) * columns : before.data();
            values[l - begin] = advance(h, after.data() + (l - begin) * columns, Decay<Wide>::factor(step * rate),
                                        input, b.data(), c.data(), scan.is_start(sequence, l), columns);
          }
          for (int64_t l = end; l-- > begin;) {
            bool is_start = scan.is_start(sequence, l);
            Wide raw = rows.raw(l), step = scan.step(raw);
            Wide factor = is_start ? Wide(0) : Decay<Wide>::factor(step * rate);
            Lanes<Wide> x = rows.of_x(scan.x, l), dy = rows.of_x(g.dy, l), input, of_input = Lanes<Wide>::all(0);
            Lanes<Wide> decayed = of_input;
            int64_t at = scan.x_at(sequence, l, head) + first;
            for (int i = 0; i < rows.count && scan.z; ++i) {
              Wide value = values[l - begin].of[i] + skip.of[i] * x.of[i];
              g.dz[at + i] = T(dy.of[i] * value * scan.gate_slope(at + i));
              dy.of[i] *= scan.gate(at + i);
            }
            for (int i = 0; i < chunk_lanes; ++i) input.of[i] = step * x.of[i];
            rows.load_columns(scan.b, l, b.data()), rows.load_columns(scan.c, l, c.data());
            const Lanes<Wide>* h = l > begin ? after.data() + (l - 1 - begin) * columns : before.data();
            const Lanes<Wide>* now = after.data() + (l - begin) * columns;
            Wide *to_b = db.data() + (task * length + l) * columns, *to_c = dc.data() + (task * length + l) * columns;
            for (int64_t n = 0; n < columns; ++n) {
              Lanes<Wide> of_b, of_c;
              Wide b_here = b[n], c_here = c[n];
              BARACUDA_INDEPENDENT
              for (int i = 0; i < chunk_lanes; ++i) {
                Wide kept = is_start ? Wide(0) : factor * h[n].of[i];
                StateGradient<Wide> state(kept, b_here, c_here, dy.of[i], carry[n].of[i]);
                of_b.of[i] = state.dh * input.of[i], of_c.of[i] = dy.of[i] * now[n].of[i];
                decayed.of[i] += state.decayed, of_input.of[i] += state.of_input;
                carry[n].of[i] = is_start ? Wide(0) : state.dh * factor;
              }
              to_b[n] += of_b.sum(), to_c[n] += of_c.sum();
            }
            Wide of_decay = decayed.sum();
            sums[0] += step * of_decay;
            Lanes<Wide> of_x;
            for (int i = 0; i < chunk_lanes; ++i) {
              of_x.of[i] = x.of[i] * of_input.of[i];
              of_skip.of[i] += dy.of[i] * x.of[i];
            }
            of_steps[l] += a * of_decay + of_x.sum();
            for (int i = 0; i < rows.count; ++i) g.dx[at + i] = T(step * of_input.of[i] + dy.of[i] * skip.of[i]);
          }
        }
        rows.store(carry, g.dstate + scan.state_at(sequence, head));
        std::copy_n(of_skip.of, rows.count, sums + 2 + first);
      }
      Rows<T> rows{scan, sequence, head, 0, 0};
      for (int64_t l = 0; l < length; ++l) {
        Wide of_raw = of_steps[l] * scan.step_slope(rows.raw(l));
        g.ddt[scan.dt_at(sequence, l, head)] = T(of_raw), sums[1] += of_raw;
      }
    }
  });
  parallel_for(executor, all, 2 * length * columns * parts, [&](int64_t of_all) {
    int64_t sequence = of_all / shape.shared, which = of_all - sequence * shape.shared;
    for (int64_t l = 0; l < length; ++l)
      for (int64_t n = 0; n < columns; ++n) {
        Wide of_b = 0, of_c = 0;
        for (int64_t part = 0; part < parts; ++part) {
          int64_t at = ((of_all * parts + part) * length + l) * columns + n;
          of_b += db[at], of_c += dc[at];
        }
        int64_t to = scan.b_at(sequence, l, which) + n;
        g.db[to] = T(of_b), g.dc[to] = T(of_c);
      }
  });
  parallel_for(executor, shape.groups * shape.heads, shape.batches * (2 + shape.rows), [&](int64_t of_head) {
    int64_t group = of_head / shape.heads, head = of_head - group * shape.heads;
    Wide of_a = 0, of_bias = 0;
    Wide* to = g.dskip + of_head * shape.skips;
    std::fill_n(to, shape.skips, Wide(0));
    for (int64_t k = 0; k < shape.batches; ++k) {
      const Wide* sums = of_heads.data() + ((group * shape.batches + k) * shape.heads + head) * (2 + shape.rows);
      of_a += sums[0], of_bias += sums[1];
      for (int64_t p = 0; p < shape.rows; ++p) to[shape.skips == 1 ? 0 : p] += sums[2 + p];
    }
    g.da[of_head] = of_a, g.dbias[of_head] = of_bias;
  });
  return {};
}

}  // namespace baracuda
