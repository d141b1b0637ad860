// Gradients of functions of rows that are dense by one number: dx of an element is made of its dy, of its weight, and
// of a sum or mean of dy over its row.
#pragma once

#include "row_sums.h"
#include "widened.h"

namespace baracuda {

// w (dy - the mean of dy by weights w). An element of weight 0 takes no part, whatever its dy is.
struct WeightedFromMean {
  static constexpr bool adds_weights = true;
  template <class Wide>
  static BARACUDA_HD void push(Wide& weights, Wide& sum, Wide w, Wide dy) {
    weights += w, sum += value_if(w != 0, w * dy);
  }
  template <class Wide>
  static BARACUDA_HD Wide of_row(Wide weights, Wide sum) {
    return sum / weights;
  }
  template <class Wide>
  static BARACUDA_HD Wide value(Wide w, Wide dy, Wide mean) {
    return value_if(w != 0, w * (dy - mean));
  }
};

// dy - the mean of dy by weights w.
struct FromMean : WeightedFromMean {
  template <class Wide>
  static BARACUDA_HD Wide value(Wide, Wide dy, Wide mean) {
    return dy - mean;
  }
};

// dy - w sum(dy), the transpose of that.
struct WithoutSum {
  static constexpr bool adds_weights = false;
  template <class Wide>
  static BARACUDA_HD void push(Wide&, Wide& sum, Wide, Wide dy) {
    sum += dy;
  }
  template <class Wide>
  static BARACUDA_HD Wide of_row(Wide, Wide sum) {
    return sum;
  }
  template <class Wide>
  static BARACUDA_HD Wide value(Wide w, Wide dy, Wide sum) {
    return dy - value_if(w != 0, w * sum);
  }
};

// A weight that is there already.
struct KeptWeight {
  template <class Wide>
  BARACUDA_HD Wide of(Wide weight) const {
    return weight;
  }
};

template <class T, class Weight, class Rule>
struct KeepingRowGradient;

// `x` is what weights are computed from: `weight.of(element)`. A weight that depends on the row has `at(row)`.
template <class T, class Weight, class Rule>
struct RowGradient : OfSums<PairSums, Accumulator<T>> {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = 1, lanes = 16;
  // Vectors of a row that a lane has registers for, and of 16-bit rows that are longer than a block's.
  static constexpr int most_held = sizeof(T) == 4 ? 8 : 4, held_of_long = is_half<T> ? 8 : most_held;
  // The elements of rows that a block has registers for, and threads enough to compute costly weights twice.
  static constexpr int arrays = 2, most_of_few = sizeof(T) > 2 ? 16384 : 32768;
  static constexpr int most_in_registers = sizeof(T) == 2 && Rule::adds_weights ? 8192 : most_of_few;
  const T *x, *dy;
  T* dx;
  Weight weight;

  template <int V>
  struct Elements {
    Vector<T, V> x, dy;
  };
  template <int V>
  using State = PairSums<Wide, V>;

  // The functor of one row.
  BARACUDA_HD RowGradient at(int64_t row) const {
    RowGradient of_row = *this;
    if constexpr (requires { weight.at(row); }) of_row.weight = weight.at(row);
    return of_row;
  }
  template <int V>
  BARACUDA_HD Elements<V> read(int64_t element) const {
    return {load<V>(x + element), load<V>(dy + element)};
  }
  // The arrays, and what `read` has, of copies of a range of each that are `step` elements apart.
  BARACUDA_HD const T* array(int k) const { return k ? dy : x; }
  template <int V>
  BARACUDA_HD Elements<V> copied(const T* from, int step) const {
    return {load<V>(from), load<V>(from + step)};
  }
  // From so many elements on a row is divided among blocks, where rows are few.
  static int64_t divided_from(int64_t columns) { return sizeof(T) > 2 || columns % 8 ? 4096 : 12288; }
  // Whether vectors of all arrays are aligned where those of one are.
  bool is_aligned() const {
    return (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(dy) | reinterpret_cast<uintptr_t>(dx)) % 16 ==
           0;
  }
  // Calls body(lane, weight of its element) for each lane.
  template <int V, class Body>
  BARACUDA_HD void each_weight(const Vector<T, V>& x, const Body& body) const {
    if constexpr (requires { weight.each(x, body); }) {
      weight.each(x, body);
    } else {
      for (int k = 0; k < V; ++k) body(k, weight.of(Wide(x.lane[k])));
    }
  }
  // One element, to one of K lanes.
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, Wide x, Wide dy) const {
    Rule::push(s.first[lane], s.second[lane], weight.of(x), dy);
  }
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, const Elements<1>& in) const {
    push_to(s, lane, Wide(in.x.lane[0]), Wide(in.dy.lane[0]));
  }
  template <int V>
  BARACUDA_HD void push(State<1>& s, const Elements<V>& in) const {
    each_weight(in.x, [&](int k, Wide w) { Rule::push(s.first[0], s.second[0], w, widened(in.dy.lane[k])); });
  }
  BARACUDA_HD Wide block(const State<1>& s) const { return Rule::of_row(s.first[0], s.second[0]); }
  BARACUDA_HD void finish(int64_t, Wide) const {}
  template <int V>
  BARACUDA_HD void write(int64_t element, const Elements<V>& in, Wide of_row) const {
    Vector<T, V> out;
    each_weight(in.x, [&](int k, Wide w) { out.lane[k] = T(Rule::value(w, widened(in.dy.lane[k]), of_row)); });
    store<V>(dx + element, out);
  }
  // On a CPU a weight is kept where dx of its element will be.
  KeepingRowGradient<T, Weight, Rule> keeping() const
    requires(!is_half<T>)
  {
    return {*this};
  }
  RowGradient<T, KeptWeight, Rule> kept() const
    requires(!is_half<T>)
  {
    return {{}, dx, dy, dx, {}};
  }
};

// The same, whose elements are read where they are pushed.
template <class T, class Weight, class Rule>
struct KeepingRowGradient : RowGradient<T, Weight, Rule> {
  template <int V>
  int64_t read(int64_t element) const {
    return element;
  }
  template <class State>
  void push_to(State& s, int lane, int64_t element) const {
    T w = this->weight.of(this->x[element]);
    this->dx[element] = w;
    Rule::push(s.first[lane], s.second[lane], w, this->dy[element]);
  }
};

}  // namespace baracuda
