// Normalization of rows: y = (offset + weight) (x - mean) r + bias with r = 1 / sqrt(mean of (x - mean)^2 + eps), and
// its gradient. RMS normalization has a mean of 0 and no bias.
#pragma once

#include <cmath>

#include "column_numbers.h"
#include "row_sums.h"
#include "widened.h"

namespace baracuda {

// Of neighboring rows, so many have one weight and bias.
struct NormalizedShape {
  int64_t columns, rows_of_weight;

  // The position of a row's weight, less that of the row.
  BARACUDA_HD int64_t weight_shift(int64_t row) const {
    int64_t of_weight = row < rows_of_weight ? 0 : row / rows_of_weight;
    return (of_weight - row) * columns;
  }
};

// What multiplies neighboring columns, and where rows are centered what is added to them, as they are stored.
template <class W, int V, bool centered>
struct ColumnPairs {
  Vector<W, V> weight;
  Vector<W, centered ? V : 1> bias;
};

// x as normalized, and where it is rounded before the weight multiplies it.
template <class T, class Wide = Accumulator<T>>
BARACUDA_HD Wide normalized(Wide x, Wide mean, Wide r, bool rounds) {
  Wide n = (x - mean) * r;
  return rounds ? Wide(T(n)) : n;
}

// A functor of the rows pattern. With `finds_mean` it sums x, and what comes after that is the functor without, which
// sums squares of differences from the mean: these are of elements in registers, and never negative.
template <class T, class W, bool centered, bool finds_mean = centered, bool widens = false>
struct Normalize : OfSums<RowSum, Accumulator<T>> {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = 1, lanes = 16;
  // Vectors of a row that a lane has registers for, and of rows that are longer than a block's.
  static constexpr int most_held = is_half<T> ? 4 : 8, held_of_long = 8;
  const T* x;
  T* y;
  const W *weight, *bias;  // of T or as they are computed with; bias where rows are centered
  Wide *mean, *r;          // of rows, or null
  Wide eps, offset;
  bool rounds;
  NormalizedShape shape;
  // Of a row.
  int64_t shift = 0;
  Wide center = 0;

  template <int V>
  using State = RowSum<Wide, V>;

  BARACUDA_HD Normalize at(int64_t row) const {
    Normalize of_row = *this;
    of_row.shift = shape.weight_shift(row);
    return of_row;
  }
  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    return load<V>(x + element);
  }
  template <class Stored>
  static BARACUDA_HD Wide wide(Stored x) {
    if constexpr (widens) return widened(x);
    return Wide(x);
  }
  BARACUDA_HD Wide term(T x) const {
    if constexpr (finds_mean) return wide(x);
    Wide difference = wide(x) - center;
    return difference * difference;
  }
  // One element, to one of K lanes.
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, const Vector<T, 1>& x) const {
    s.lane[lane] += term(x.lane[0]);
  }
  template <int V>
  BARACUDA_HD void push(State<1>& s, const Vector<T, V>& x) const {
    for (int k = 0; k < V; ++k) s.lane[0] += term(x.lane[k]);
  }
  // What sums again.
  BARACUDA_HD Normalize<T, W, centered, false, widens> after(const State<1>& s) const
    requires finds_mean
  {
    return {{}, x, y, weight, bias, mean, r, eps, offset, rounds, shape, shift, s.lane[0] / Wide(shape.columns)};
  }
  BARACUDA_HD Wide block(const State<1>& s) const { return Wide(1) / std::sqrt(s.lane[0] / Wide(shape.columns) + eps); }
  BARACUDA_HD void finish(int64_t row, Wide of_row) const {
    if (mean) mean[row] = center;
    if (r) r[row] = of_row;
  }
  template <int V>
  BARACUDA_HD ColumnPairs<W, V, centered> columns(int64_t element) const {
    ColumnPairs<W, V, centered> of;
    of.weight = load<V>(weight + element + shift);
    if constexpr (centered) of.bias = load<V>(bias + element + shift);
    return of;
  }
  // What is read besides x to write. Loads of a weight alone do not wait for the sums. Those of a bias too would take
  // registers from a second sum: 172 us of [16384, 4096] in float32, where waiting takes 137.
  template <int V>
  BARACUDA_HD ColumnPairs<W, V, false> read_ahead(int64_t element) const
    requires(!centered)
  {
    return columns<V>(element);
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& x, const ColumnPairs<W, V, centered>& of,
                         Wide of_row) const {
    Wide n[V];
    for (int k = 0; k < V; ++k) n[k] = (wide(x.lane[k]) - center) * of_row;
    if constexpr (!centered)
      if (rounds)
        for (int k = 0; k < V; ++k) n[k] = Wide(T(n[k]));
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      Wide value = n[k] * (offset + wide(of.weight.lane[k]));
      if constexpr (centered) value += Wide(of.bias.lane[k]);
      out.lane[k] = T(value);
    }
    store<V>(y + element, out);
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& x, Wide of_row) const {
    write(element, x, columns<V>(element), of_row);
  }
};

// RMS normalization of x + residual, which is rounded, and written too: of bfloat16 so many conversions that it gains
// by `widened`.
template <class T, class W>
struct AddNormalize : Normalize<T, W, false, false, true> {
  using Base = Normalize<T, W, false, false, true>;
  const T* residual;
  T* total;

  BARACUDA_HD AddNormalize at(int64_t row) const {
    AddNormalize of_row = *this;
    of_row.shift = this->shape.weight_shift(row);
    return of_row;
  }
  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    Vector<T, V> a = load<V>(this->x + element), b = load<V>(residual + element);
    for (int k = 0; k < V; ++k) a.lane[k] = T(widened(a.lane[k]) + widened(b.lane[k]));
    return a;
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& sum, const ColumnPairs<W, V, false>& of,
                         Accumulator<T> of_row) const {
    Base::write(element, sum, of, of_row);
    store<V>(total + element, sum);
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& sum, Accumulator<T> of_row) const {
    write(element, sum, Base::template columns<V>(element), of_row);
  }
};

// The gradient: with n the normalized x and g = (offset + weight) dy, dx = r (g - mean(g) - n mean(g n)) + more, where
// RMS normalization, which is not `centered`, has no mean(g). A functor of the rows pattern. The pattern with sums of
// columns asks it for what an element adds to these: n dy for dweight, and dy for dbias.
template <class T, bool centered>
struct NormalizeGradient : OfSums<PairSums, Accumulator<T>> {
  using Element = T;
  using Wide = Accumulator<T>;
  // Vectors of a row that a lane has registers for.
  static constexpr int least_width = 1, lanes = 16, most_held = sizeof(T) == 2 ? 2 : 4;
  static constexpr int column_sums = centered ? 2 : 1;
  const T *x, *dy, *more;  // more may be null
  T* dx;
  ColumnNumbers<T> weight;
  const Wide *mean, *r;  // of rows; mean is null where it is 0
  Wide offset;
  bool rounds;
  NormalizedShape shape;
  // Of a row.
  int64_t shift = 0;
  Wide center = 0, scale = 0;

  template <int V>
  struct Elements {
    Vector<T, V> x, dy;
    Vector<Wide, V> factor;
  };
  template <int V>
  using State = PairSums<Wide, V>;
  struct Means {
    Wide of_g, of_gn;
  };

  BARACUDA_HD NormalizeGradient at(int64_t row) const {
    NormalizeGradient of_row = *this;
    of_row.shift = shape.weight_shift(row);
    of_row.center = centered ? mean[row] : Wide(0), of_row.scale = r[row];
    return of_row;
  }
  // From so many elements on a row is divided among blocks, where rows are few.
  static int64_t divided_from(int64_t) { return 8192; }
  // What multiplies dy, at a position of the weight.
  template <int V>
  BARACUDA_HD Vector<Wide, V> factors(int64_t position) const {
    Vector<Wide, V> factor = weight.template read<V>(position);
    for (int k = 0; k < V; ++k) factor.lane[k] += offset;
    return factor;
  }
  template <int V>
  BARACUDA_HD Elements<V> read(int64_t element) const {
    return {load<V>(x + element), load<V>(dy + element), factors<V>(element + shift)};
  }
  // One element, to one of K lanes.
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, Wide x, Wide dy, Wide factor) const {
    Wide g = factor * dy;
    if constexpr (centered) s.first[lane] += g;
    s.second[lane] += g * ((x - center) * scale);
  }
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, const Elements<1>& in) const {
    push_to(s, lane, Wide(in.x.lane[0]), Wide(in.dy.lane[0]), in.factor.lane[0]);
  }
  template <int V>
  BARACUDA_HD void push(State<1>& s, const Elements<V>& in) const {
    for (int k = 0; k < V; ++k) push_to(s, 0, Wide(in.x.lane[k]), Wide(in.dy.lane[k]), in.factor.lane[k]);
  }
  BARACUDA_HD Means block(const State<1>& s) const {
    Wide count = Wide(shape.columns);
    return {centered ? s.first[0] / count : Wide(0), s.second[0] / count};
  }
  BARACUDA_HD void finish(int64_t, const Means&) const {}
  BARACUDA_HD Wide value(Wide x, Wide dy, Wide factor, const Means& means) const {
    Wide n = (x - center) * scale, g = factor * dy;
    if constexpr (centered) g -= means.of_g;
    return scale * (g - n * means.of_gn);
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Elements<V>& in, const Means& means) const {
    Wide values[V];
    for (int k = 0; k < V; ++k) values[k] = value(Wide(in.x.lane[k]), Wide(in.dy.lane[k]), in.factor.lane[k], means);
    write_values<V>(element, values);
  }
  template <int V>
  BARACUDA_HD void write_values(int64_t element, const Wide* values) const {
    Vector<T, V> out;
    if (more) {
      Vector<T, V> added = load<V>(more + element);
      for (int k = 0; k < V; ++k) out.lane[k] = T(values[k] + Wide(added.lane[k]));
    } else {
      for (int k = 0; k < V; ++k) out.lane[k] = T(values[k]);
    }
    store<V>(dx + element, out);
  }
  // What an element adds to the sums of its column: to the first for dweight, to the second for dbias.
  BARACUDA_HD Wide of_weight(Wide x, Wide dy) const { return dy * normalized<T>(x, center, scale, rounds); }
};

}  // namespace baracuda
