// The softmax of a segment's rows, and its derivative, which is its own transpose.
#pragma once

#include "segment_log_sum_exp.h"

namespace baracuda {

// e^(x - y - rest), y + rest being the logarithm of the sum; 0 for -inf, NaN for +inf.
template <class T>
BARACUDA_HD Comparable<T> segment_weight(Comparable<T> x, Comparable<T> y, Comparable<T> rest) {
  using Wide = Comparable<T>;
  return x == std::numeric_limits<Wide>::infinity() ? x - x : exponential_below<T>(x, y, rest);
}

template <class T>
struct SegmentSoftmax : SegmentLogSum<T> {
  using Base = SegmentLogSum<T>;
  using typename Base::Wide;
  template <int V>
  using Part = typename Base::template Part<V>;

  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t, int64_t x_element) const {
    Vector<T, V> out = load<V>(this->x + x_element);
    for (int k = 0; k < V; ++k)
      out.lane[k] = T(segment_weight<T>(Wide(out.lane[k]), Wide(part.y.lane[k]), part.rest.lane[k]));
    return out;
  }
};

// The sum of a segment's weights times dy [B, N, D]: with the largest x so far, the sum of e^(x - largest) and that of
// e^(x - largest) dy, so that nothing of the segment need be known before its rows. What has weight 0 takes no part.
template <class T>
struct SegmentSoftmaxDots {
  using Element = T;
  using Wide = Comparable<T>;
  template <int V>
  struct State {
    Wide most[V], sum[V], dots[V];
  };
  const T* dy;
  Wide* mean;

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.most[k] = -std::numeric_limits<Wide>::infinity(), s.sum[k] = 0, s.dots[k] = 0;
  }
  template <int V>
  BARACUDA_HD Vector<T, V> more(const SegmentRow& row) const {
    return load<V>(dy + row.x_element);
  }
  // So much more, relative to an exponent.
  template <int V>
  static BARACUDA_HD void add(State<V>& s, int k, Wide most, Wide sum, Wide dots) {
    SegmentScales<T> scales(s.most[k], most);
    s.sum[k] = s.sum[k] * scales.before + sum * scales.here;
    s.dots[k] =
        (scales.before == 0 ? Wide(0) : s.dots[k] * scales.before) + (scales.here == 0 ? Wide(0) : dots * scales.here);
    s.most[k] = largest(s.most[k], most);
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t, const Vector<T, V>& dy_here) const {
    for (int k = 0; k < V; ++k) add<V>(s, k, Wide(x[k]), Wide(1), Wide(dy_here.lane[k]));
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) add<V>(s, k, later.most[k], later.sum[k], later.dots[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Vector<Wide, V> out;
    for (int k = 0; k < V; ++k)
      out.lane[k] = s.most[k] == -std::numeric_limits<Wide>::infinity() ? Wide(0) : s.dots[k] / s.sum[k];
    store<V>(mean + element, out);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(mean + element, Wide(0));
  }
};

// The weight times what dy is above that mean.
template <class T>
struct SegmentSoftmaxBackward : SegmentLogSum<T> {
  using Base = SegmentLogSum<T>;
  using typename Base::Wide;
  template <int V>
  struct Part {
    typename Base::template Part<V> sum;
    Vector<Wide, V> mean;
  };
  const T* dy;
  const Wide* mean;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t segment, int64_t element) const {
    return {Base::template part<V>(segment, element), load<V>(mean + element)};
  }
  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t, int64_t x_element) const {
    Vector<T, V> out = load<V>(this->x + x_element), given = load<V>(dy + x_element);
    for (int k = 0; k < V; ++k) {
      Wide weight = segment_weight<T>(Wide(out.lane[k]), Wide(part.sum.y.lane[k]), part.sum.rest.lane[k]);
      out.lane[k] = above_mean(weight, given.lane[k], part.mean.lane[k]);
    }
    return out;
  }
  static BARACUDA_HD T above_mean(Wide weight, T given, Wide mean) {
    return T(weight == 0 ? Wide(0) : weight * (Wide(given) - mean));
  }
};

// Both steps of rows that are on chip between them, see ffi/patterns/segment_held_cuda.h. The largest element is known
// before the first exponential, so each row takes one. A float replaces the row until that is written.
template <class T>
struct SegmentSoftmaxOnChip {
  using Element = T;
  using Reducer = SegmentLogSumExp<T>;
  using Broadcaster = SegmentSoftmax<T>;
  using Wide = Comparable<T>;
  template <int V>
  using Row = Vector<T, V>;
  template <int V>
  using State = typename Reducer::template State<V>;
  static constexpr bool keeps_weights = !is_half<T>;
  Reducer reducer;
  Broadcaster broadcaster;

  template <int V>
  BARACUDA_HD Row<V> row(int64_t x_element) const {
    return load<V>(broadcaster.x + x_element);
  }
  template <int V>
  BARACUDA_HD void begin(State<V>& s, int64_t, int64_t) const {
    reducer.start(s);
  }
  template <int V>
  BARACUDA_HD void look(State<V>& s, const Row<V>& row) const {
    for (int k = 0; k < V; ++k) s.most[k] = largest(s.most[k], Wide(row.lane[k]));
  }
  template <int V, class OfAll>
  BARACUDA_HD void agree(State<V>& s, const OfAll& of_all) const {
    of_all(s.most, [](Wide a, Wide b) { return largest(a, b); });
  }
  static BARACUDA_HD Wide weight(Wide x, Wide most) {
    Wide power = exponential<T>(x - most);
    return x == -std::numeric_limits<Wide>::infinity() ? Wide(0) : power;
  }
  template <int V>
  BARACUDA_HD void weigh(const State<V>& s, Row<V>& row) const {
    if constexpr (keeps_weights)
      for (int k = 0; k < V; ++k) row.lane[k] = weight(row.lane[k], s.most[k]);
  }
  template <int V>
  BARACUDA_HD Wide weight_of(const State<V>& s, const Row<V>& row, int k) const {
    return keeps_weights ? Wide(row.lane[k]) : weight(Wide(row.lane[k]), s.most[k]);
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const Row<V>& row) const {
    for (int k = 0; k < V; ++k) s.sum[k] += weight_of<V>(s, row, k);
  }
  template <int V, class OfAll>
  BARACUDA_HD void sum(State<V>& s, const OfAll& of_all) const {
    of_all(s.sum, [](Wide a, Wide b) { return a + b; });
  }
  // What a segment has, by the first lane; then weights are multiplied by what one over the sum is. Where the largest
  // is not finite they are 0 and NaN as they are.
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows& rows, int64_t segment, int64_t element) const {
    reducer.finish(s, rows, segment, element);
  }
  template <int V>
  BARACUDA_HD void turn(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.sum[k] = s.most[k] - s.most[k] == 0 ? 1 / s.sum[k] : Wide(1);
  }
  template <int V>
  BARACUDA_HD Vector<T, V> value(const State<V>& s, const Row<V>& row) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(weight_of<V>(s, row, k) * s.sum[k]);
    return out;
  }
};

// The same of the gradient: the weights are known at once.
template <class T>
struct SegmentSoftmaxBackwardOnChip {
  using Element = T;
  using Reducer = SegmentSoftmaxDots<T>;
  using Broadcaster = SegmentSoftmaxBackward<T>;
  using Wide = Comparable<T>;
  template <int V>
  struct Row {
    Vector<T, V> x, dy;
  };
  template <int V>
  using State = typename Broadcaster::template Part<V>;
  static constexpr bool keeps_weights = !is_half<T>;
  Reducer reducer;
  Broadcaster broadcaster;

  template <int V>
  BARACUDA_HD Row<V> row(int64_t x_element) const {
    return {load<V>(broadcaster.x + x_element), load<V>(broadcaster.dy + x_element)};
  }
  template <int V>
  BARACUDA_HD void begin(State<V>& s, int64_t segment, int64_t element) const {
    s.sum = broadcaster.SegmentLogSum<T>::template part<V>(segment, element);
    for (int k = 0; k < V; ++k) s.mean.lane[k] = 0;
  }
  template <int V>
  static BARACUDA_HD Wide weight(const State<V>& s, const Row<V>& row, int k) {
    return segment_weight<T>(Wide(row.x.lane[k]), Wide(s.sum.y.lane[k]), s.sum.rest.lane[k]);
  }
  template <int V>
  BARACUDA_HD void weigh(const State<V>& s, Row<V>& row) const {
    if constexpr (keeps_weights)
      for (int k = 0; k < V; ++k) row.x.lane[k] = weight<V>(s, row, k);
  }
  template <int V>
  BARACUDA_HD Wide weight_of(const State<V>& s, const Row<V>& row, int k) const {
    return keeps_weights ? Wide(row.x.lane[k]) : weight<V>(s, row, k);
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const Row<V>& row) const {
    for (int k = 0; k < V; ++k) {
      Wide here = weight_of<V>(s, row, k);
      s.mean.lane[k] += here == 0 ? Wide(0) : here * Wide(row.dy.lane[k]);
    }
  }
  template <int V, class OfAll>
  BARACUDA_HD void sum(State<V>& s, const OfAll& of_all) const {
    of_all(s.mean.lane, [](Wide a, Wide b) { return a + b; });
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    store<V>(reducer.mean + element, s.mean);
  }
  template <int V>
  BARACUDA_HD void turn(State<V>&) const {}
  template <int V>
  BARACUDA_HD Vector<T, V> value(const State<V>& s, const Row<V>& row) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k)
      out.lane[k] = Broadcaster::above_mean(weight_of<V>(s, row, k), row.dy.lane[k], s.mean.lane[k]);
    return out;
  }
};

}  // namespace baracuda
