// Projections of rows on the simplex that leave elements at 0: sparsemax (Martins and Astudillo, 2016) and 1.5-entmax
// (Peters et al., 2019), and their gradients.
//
// A row's result is a function of z - tau, with z = (x - max x) * scale <= 0 and the threshold tau, at which the
// results add up to 1. That is the root of a convex function of tau, which Newton's method reaches from the left
// without ever passing it: from -1, at which the largest element's result alone is 1. A projection has two sums over a
// row (`push`), the step that they give (`next`), and the result of an element (`value`).
#pragma once

#include "greater.h"

namespace baracuda {

// Two sums, in V lanes.
template <class Wide, int V>
struct PairSums {
  Wide first[V], second[V];

  BARACUDA_HD void clear() {
    for (int k = 0; k < V; ++k) first[k] = second[k] = Wide(0);
  }
  BARACUDA_HD void add(const PairSums& other) {
    for (int k = 0; k < V; ++k) first[k] += other.first[k], second[k] += other.second[k];
  }
  // The sums of all lanes, a power of two.
  BARACUDA_HD PairSums<Wide, 1> merged() const {
    PairSums all = *this;
    for (int width = V / 2; width > 0; width /= 2)
      for (int k = 0; k < width; ++k) all.first[k] += all.first[k + width], all.second[k] += all.second[k + width];
    return {{all.first[0]}, {all.second[0]}};
  }
};

// The rounding of a result, but never to 0 where it is more: the gradient of sparsemax finds the support in results.
template <class T, class Wide>
BARACUDA_HD T kept_above_zero(Wide value) {
  constexpr Wide smallest = std::is_same_v<T, Half> ? Wide(0x1p-24) : Wide(0);
  return T(((value > Wide(0)) & (value < smallest)) ? smallest : value);
}

// y = max(z - tau, 0). A step is the exact solution on the elements above tau: the last is where none of them leaves.
template <class T>
struct Sparsemax {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr Wide scale = 1;
  const T* x;
  T* y;

  // The number of elements above tau, and their sum.
  static BARACUDA_HD void push(Wide z, Wide tau, Wide& count, Wide& sum) {
    bool is_above = z > tau;
    count += value_if(is_above, Wide(1)), sum += value_if(is_above, z);
  }
  static BARACUDA_HD Wide next(Wide tau, Wide count, Wide sum) { return (sum - 1) / count; }
  static BARACUDA_HD T value(Wide z, Wide tau) {
    Wide above = z - tau;
    return kept_above_zero<T>(above < 0 ? Wide(0) : above);  // NaN stays
  }
};

// y = max(z - tau, 0)^2. Newton's method is applied to the root of the sum of squares, which is nearly linear, not to
// the sum: on rows of equal elements one step is enough.
template <class T>
struct Entmax15 {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr Wide scale = Wide(0.5);
  const T* x;
  T* y;

  // The sums of what is above tau, and of its squares.
  static BARACUDA_HD void push(Wide z, Wide tau, Wide& sum, Wide& squares) {
    Wide difference = z - tau, above = difference > 0 ? difference : Wide(0);
    sum += above, squares += above * above;
  }
  static BARACUDA_HD Wide next(Wide tau, Wide sum, Wide squares) {
    Wide norm = std::sqrt(squares);
    return tau + (norm - 1) * norm / sum;
  }
  static BARACUDA_HD T value(Wide z, Wide tau) {
    Wide above = z - tau;
    above = above < 0 ? Wide(0) : above;  // NaN stays
    return T(above * above);
  }
};

// The most steps. Each leaves at most a quarter of the product of the function and its slope, which of n elements is at
// most n^2 in the beginning: float64 needs no more for 2^38 elements.
inline constexpr int projection_steps = 64;

// Where Newton's method begins: NaN where the largest element is not finite, and then so is the row.
template <class Wide>
BARACUDA_HD Wide first_threshold(Wide largest) {
  return largest - largest - 1;
}

// The weight of an element in its row's gradient, of its result: 1 or 0 of sparsemax, the root of 1.5-entmax. NaN
// stays.
struct SupportWeight {
  template <class Wide>
  static BARACUDA_HD Wide of(Wide y) {
    return y > 0 ? Wide(1) : y;
  }
};
struct RootWeight {
  template <class Wide>
  static BARACUDA_HD Wide of(Wide y) {
    return std::sqrt(y);
  }
};

// dx = w (dy - mean), with the mean of dy by weights w. An element of weight 0 takes no part, whatever its dy is.
template <class T, class Weight>
struct ProjectionBackward {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = 1, lanes = 16, most_held = sizeof(T) == 4 ? 8 : 4;
  const T *y, *dy;
  T* dx;

  template <int V>
  struct Elements {
    Vector<T, V> y, dy;
  };
  template <int V>
  using State = PairSums<Wide, V>;

  template <int V = 1>
  BARACUDA_HD State<V> start() const {
    State<V> s;
    s.clear();
    return s;
  }
  template <int V>
  BARACUDA_HD Elements<V> read(int64_t element) const {
    return {load<V>(y + element), load<V>(dy + element)};
  }
  // One element, to one of K lanes.
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, Wide y, Wide dy) const {
    Wide weight = Weight::of(y);
    s.first[lane] += weight, s.second[lane] += value_if(weight != 0, weight * dy);
  }
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, const Elements<1>& in) const {
    push_to(s, lane, Wide(in.y.lane[0]), Wide(in.dy.lane[0]));
  }
  template <int V>
  BARACUDA_HD void push(State<1>& s, const Elements<V>& in) const {
    for (int k = 0; k < V; ++k) push_to(s, 0, Wide(in.y.lane[k]), Wide(in.dy.lane[k]));
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    s.add(other);
  }
  BARACUDA_HD Wide block(const State<1>& s) const { return s.second[0] / s.first[0]; }
  BARACUDA_HD void finish(int64_t, Wide) const {}
  template <int V>
  BARACUDA_HD void write(int64_t element, const Elements<V>& in, Wide mean) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      Wide weight = Weight::of(Wide(in.y.lane[k]));
      out.lane[k] = T(value_if(weight != 0, weight * (Wide(in.dy.lane[k]) - mean)));
    }
    store<V>(dx + element, out);
  }
};

}  // namespace baracuda
