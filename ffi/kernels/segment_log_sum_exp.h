// The logarithm of the sum of exponentials of a segment's rows, and what a cotangent of it gives them.
#pragma once

#include "reduce/log_sum_exp.h"
#include "segment.h"

namespace baracuda {

// What sums relative to `most`, and what is relative to `value`, are multiplied by when the larger becomes the base of
// both: one exponential, since one of them is 1. Of two that are -inf both are: what was added up is then worth
// nothing, and is multiplied by 0 when a number comes.
template <class T>
struct SegmentScales {
  using Wide = Comparable<T>;
  Wide before, here;

  BARACUDA_HD SegmentScales(Wide most, Wide value) {
    bool grows = value > most;
    Wide gap = grows ? most - value : value - most, power = exponential<T>(most == value ? Wide(0) : gap);
    before = grows ? power : Wide(1), here = grows ? Wide(1) : power;
  }
};

// As ReduceLogSumExp: the largest x, and the sum of e^(x - largest).
template <class T>
struct SegmentLogSumExp {
  using Element = T;
  using Wide = Comparable<T>;
  template <int V>
  struct State {
    Wide most[V], sum[V];
  };
  T* y;
  Wide* rest;  // null when nobody asks for it
  T empty_value;

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.most[k] = -std::numeric_limits<Wide>::infinity(), s.sum[k] = 0;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t) const {
    for (int k = 0; k < V; ++k) {
      SegmentScales<T> scales(s.most[k], Wide(x[k]));
      s.sum[k] = s.sum[k] * scales.before + scales.here;
      s.most[k] = largest(s.most[k], Wide(x[k]));
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) {
      SegmentScales<T> scales(s.most[k], later.most[k]);
      s.sum[k] = s.sum[k] * scales.before + later.sum[k] * scales.here;
      s.most[k] = largest(s.most[k], later.most[k]);
    }
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Vector<T, V> out;
    Vector<Wide, V> left;
    for (int k = 0; k < V; ++k) {
      bool is_finite = s.most[k] - s.most[k] == 0;
      Wide log = is_finite ? logarithm(s.sum[k]) : Wide(0);
      out.lane[k] = T(s.most[k] + log);
      left.lane[k] = rest_of(s.most[k], log, Wide(out.lane[k]));
    }
    store<V>(y + element, out);
    if (rest != nullptr) store<V>(rest + element, left);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(y + element, empty_value);
    if (rest != nullptr) fill<V>(rest + element, Wide(0));
  }
};

// Rows of x next to the logarithm of their segment's sum: y, and `rest`, which rounding took from it.
template <class T>
struct SegmentLogSum {
  using Element = T;
  using Wide = Comparable<T>;
  template <int V>
  struct Part {
    Vector<T, V> y;
    Vector<Wide, V> rest;
  };
  const T* x;
  const T* y;
  const Wide* rest;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t, int64_t element) const {
    return {load<V>(y + element), load<V>(rest + element)};
  }
};

// dy e^(x - y - rest).
template <class T>
struct SegmentLogSumExpBackward : SegmentLogSum<T> {
  using Base = SegmentLogSum<T>;
  using typename Base::Wide;
  template <int V>
  struct Part {
    typename Base::template Part<V> sum;
    Vector<T, V> dy;
  };
  const T* dy;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t segment, int64_t element) const {
    return {Base::template part<V>(segment, element), load<V>(dy + element)};
  }
  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t, int64_t x_element) const {
    Vector<T, V> dx = load<V>(this->x + x_element);
    for (int k = 0; k < V; ++k) {
      Wide own = exponential_below<T>(Wide(dx.lane[k]), Wide(part.sum.y.lane[k]), part.sum.rest.lane[k]);
      dx.lane[k] = T(Wide(part.dy.lane[k]) * own);
    }
    return dx;
  }
};

}  // namespace baracuda
