// Steps of optimizers on the rows of a table, of which each is a segment: the sum of a segment's rows is its gradient,
// which is never in memory. A row without any stays as it is. Where the result is the table's own memory nothing of it
// is written.
#pragma once

#include "segment_variance.h"

namespace baracuda {

template <class T>
struct SegmentStep {
  using Element = T;
  using Sum = Accumulator<T>;
  static constexpr bool by_buckets = true;
  static constexpr bool in_place = true;  // see ffi/patterns/segment_cpu.h
  template <int V>
  using State = typename SegmentSum<T>::template State<V>;
  const T* table;
  T* y;
  const Sum* rates;  // of each batch
  int64_t batch;     // elements of a batch's table
  double inverse;    // one over these

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    SegmentSum<T>{}.template start<V>(s);
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t row) const {
    SegmentSum<T>{}.template push<V>(s, x, row);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    SegmentSum<T>{}.template merge<V>(s, later);
  }
  // A division of 64 bits would take the registers of rows on their way.
  BARACUDA_HD Sum rate(int64_t element) const {
    int64_t found = int64_t(double(element) * inverse), rest = element - found * batch;
    return rates[found + (rest >= batch) - (rest < 0)];
  }
  template <int V, class A>
  static BARACUDA_HD void keep(const A* from, A* to, int64_t element) {
    if (from != to) store<V>(to + element, load<V>(from + element));
  }
};

// Gradient descent.
template <class T>
struct SegmentSgdStep : SegmentStep<T> {
  using Sum = Accumulator<T>;
  template <int V>
  using State = typename SegmentStep<T>::template State<V>;
  static constexpr int most_blocks = is_half<T> ? 3 : 4;

  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Sum rate = this->rate(element);
    Vector<T, V> row = load<V>(this->table + element);
    for (int k = 0; k < V; ++k) row.lane[k] = T(Sum(row.lane[k]) - rate * s.sum[k]);
    store<V>(this->y + element, row);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    this->template keep<V>(this->table, this->y, element);
  }
};

// a / b; CUDA's own has a call for numbers that are subnormal.
template <class Wide>
BARACUDA_HD Wide ratio(Wide a, Wide b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<Wide, float>) return __fdividef(a, b);
#endif
  return a / b;
}

// Adagrad: the gradient over the root of its sum of squares, which is A: T, or what sums of T are computed in.
template <class T, class A>
struct SegmentAdagradStep : SegmentStep<T> {
  using Sum = Accumulator<T>;
  template <int V>
  using State = typename SegmentStep<T>::template State<V>;
  static constexpr int most_blocks = sizeof(T) == 4 ? 3 : 2;
  const A* squares;
  A* new_squares;
  Sum eps;

  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Sum rate = this->rate(element);
    Vector<T, V> row = load<V>(this->table + element);
    Vector<A, V> squares_here = load<V>(squares + element);
    for (int k = 0; k < V; ++k) {
      Sum gradient = s.sum[k], sum = Sum(squares_here.lane[k]) + gradient * gradient;
      Sum inverse, step = ratio(rate * gradient, root_and_inverse(sum, inverse) + eps);
      row.lane[k] = T(Sum(row.lane[k]) - (gradient == Sum(0) ? Sum(0) : step));  // also where the root and eps are zero
      squares_here.lane[k] = A(sum);
    }
    store<V>(this->y + element, row);
    store<V>(new_squares + element, squares_here);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    this->template keep<V>(this->table, this->y, element);
    this->template keep<V>(squares, new_squares, element);
  }
};

}  // namespace baracuda
