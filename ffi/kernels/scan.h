// Scans: what is carried along an axis of an array.
//
// A functor has a State, and five steps: `none` (of no element), `read` (the inputs of a few neighboring elements),
// `term` (of one of these elements), `join` (two neighboring ranges, the earlier first; it is associative) and `write`
// (what these elements see, `s[k]` of lane k: all up to it, or all before it). `inputs` is the number of arrays that
// are read. It may have ways that are shorter than joins: `total` and `walk` of neighboring elements, `align` of many
// ranges. The elements, and their neighbors in the direction of the scan, are a ScanColumns or a ScanRow.
#pragma once

#include <cmath>
#include <limits>

#include "complex.h"
#include "exponential.h"
#include "extreme.h"
#include "rest.h"

namespace baracuda {

// What was read of two or three arrays.
template <class First, class Second>
struct Pair {
  First first;
  Second second;
};
template <class First, class Second>
Pair(First, Second) -> Pair<First, Second>;
template <class First, class Second, class Third>
struct Triple {
  First first;
  Second second;
  Third third;
};
template <class First, class Second, class Third>
Triple(First, Second, Third) -> Triple<First, Second, Third>;

// One position of V neighboring slices. Positions count from where the scan begins.
template <int V>
struct ScanColumns {
  static constexpr int lanes = V;
  int64_t element, step;  // the next position is at element + step
  int64_t position, count;

  BARACUDA_HD bool is_first(int) const { return position == 0; }
  BARACUDA_HD bool is_last(int) const { return position + 1 == count; }
  // Which position on the axis lane k has.
  BARACUDA_HD int32_t index(int) const { return int32_t(step < 0 ? count - 1 - position : position); }
  BARACUDA_HD int32_t first_index() const { return int32_t(step < 0 ? count - 1 : 0); }

  template <class T>
  BARACUDA_HD Vector<T, V> load(const T* x) const {
    return baracuda::load<V>(x + element);
  }
  // The elements before; anything where there is none.
  template <class T>
  BARACUDA_HD Vector<T, V> before(const T* x) const {
    return baracuda::load<V>(x + (position == 0 ? element : element - step));
  }
  // The elements before, and these.
  template <class T>
  BARACUDA_HD auto with_before(const T* x) const {
    return Pair{before(x), load(x)};
  }
  template <class T>
  BARACUDA_HD Vector<T, V> after(const T* x) const {
    return baracuda::load<V>(x + (position + 1 == count ? element : element + step));
  }
  template <class T, class Value>
  BARACUDA_HD void store(T* y, const Value& value) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = value(k);
    baracuda::store<V>(y + element, out);
  }
};

// V neighboring positions of one slice, whose elements are neighbors in memory.
template <int V>
struct ScanRow {
  static constexpr int lanes = V;
  int64_t element;  // of lane 0
  int64_t position, count;
  bool reverse;

  BARACUDA_HD bool is_first(int k) const { return position + k == 0; }
  BARACUDA_HD bool is_last(int k) const { return position + k + 1 == count; }
  BARACUDA_HD int32_t index(int k) const { return int32_t(reverse ? count - 1 - position - k : position + k); }
  BARACUDA_HD int32_t first_index() const { return int32_t(reverse ? count - 1 : 0); }

  template <class T>
  BARACUDA_HD Vector<T, V> load(const T* x) const {
    return in_order(baracuda::load<V>(x + low()));
  }
  template <class T>
  BARACUDA_HD Vector<T, V> before(const T* x) const {
    return moved_up(load(x), x);
  }
  template <class T>
  BARACUDA_HD auto with_before(const T* x) const {
    Vector<T, V> here = load(x);
    return Pair{moved_up(here, x), here};
  }
  template <class T>
  BARACUDA_HD Vector<T, V> after(const T* x) const {
    return moved_down(load(x), x);
  }
  template <class T, class Value>
  BARACUDA_HD void store(T* y, const Value& value) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = value(k);
    baracuda::store<V>(y + low(), in_order(out));
  }

  // The element that is first in memory.
  BARACUDA_HD int64_t low() const { return reverse ? element - (V - 1) : element; }
  // Elements in the order of the scan, of those in the order of memory; or the other way round.
  template <class T>
  BARACUDA_HD Vector<T, V> in_order(const Vector<T, V>& lanes) const {
    if (!reverse) return lanes;
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = lanes.lane[V - 1 - k];
    return out;
  }
  // The neighbors of elements of x.
  template <class T>
  BARACUDA_HD Vector<T, V> moved_up(const Vector<T, V>& here, const T* x) const {
    Vector<T, V> out;
    out.lane[0] = position == 0 ? here.lane[0] : x[element - step()];
    for (int k = 1; k < V; ++k) out.lane[k] = here.lane[k - 1];
    return out;
  }
  template <class T>
  BARACUDA_HD Vector<T, V> moved_down(const Vector<T, V>& here, const T* x) const {
    Vector<T, V> out;
    out.lane[V - 1] = position + V == count ? here.lane[V - 1] : x[element + V * step()];
    for (int k = 1; k < V; ++k) out.lane[k - 1] = here.lane[k];
    return out;
  }

 private:
  BARACUDA_HD int64_t step() const { return reverse ? -1 : 1; }
};

// A scan of one array, which an element of it begins as a range of its own.
template <class T, class State_>
struct Cumulative {
  using Element = T;
  using State = State_;
  static constexpr int inputs = 1;
  const T* x;
  T* y;

  template <class At>
  BARACUDA_HD auto read(const At& at) const {
    return at.load(x);
  }
  template <class At, class In>
  BARACUDA_HD State term(const At&, const In& in, int k) const {
    return State(in.lane[k]);
  }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In&, const States& s) const {
    at.store(y, [&](int k) { return T(s[k]); });
  }
};

template <class T>
struct CumSum : Cumulative<T, Accumulator<T>> {
  using State = Accumulator<T>;
  BARACUDA_HD static State none() { return State(0); }
  BARACUDA_HD static State join(State a, State b) { return a + b; }
};

// Stores what a gradient reads in place of y where that is a Half, and it was asked for.
template <class T, class At, class Value>
BARACUDA_HD void store_ranged(const At& at, Ranged<T>* to, const Value& value) {
  if constexpr (std::is_same_v<T, Half>) {
    if (to != nullptr) at.store(to, value);
  }
}

template <class T>
struct CumProd : Cumulative<T, Accumulator<T>> {
  using State = Accumulator<T>;
  Ranged<T>* ranged;

  BARACUDA_HD static State none() { return State(1); }
  BARACUDA_HD static State join(State a, State b) { return a * b; }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In&, const States& s) const {
    at.store(this->y, [&](int k) { return T(s[k]); });
    store_ranged<T>(at, ranged, [&](int k) { return Ranged<T>(s[k]); });
  }
};

// The extreme value so far.
template <class T>
struct CumExtremum : Cumulative<T, Comparable<T>> {
  using Order = Extreme<T>;
  using State = Comparable<T>;
  Order order;

  BARACUDA_HD static State none() { return Order::weakest(); }
  BARACUDA_HD static State join(State a, State b) { return Order::beats(b, a) ? b : a; }
  template <class At, class In>
  BARACUDA_HD State term(const At&, const In& in, int k) const {
    return order.value(in.lane[k]);
  }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In&, const States& s) const {
    at.store(this->y, [&](int k) { return order.number(s[k]); });
  }
};

// The extreme value so far and the first element that has it. While all are as weak as the value before the first,
// there is no index: it is then that of the scan's first element.
template <class T>
struct CumArgExtremum {
  using Order = Extreme<T>;
  using Value = Comparable<T>;
  using Element = T;
  struct State {
    Value value;
    int32_t index;  // -1: none yet
  };
  static constexpr int inputs = 1;
  const T* x;
  T* y;
  int32_t* index;  // which element of the axis has it; before an exclusive scan's first, the number of all
  bool exclusive;
  Order order;

  BARACUDA_HD static State none() { return {Order::weakest(), -1}; }
  template <class At>
  BARACUDA_HD auto read(const At& at) const {
    return at.load(x);
  }
  template <class At, class In>
  BARACUDA_HD State term(const At& at, const In& in, int k) const {
    Value value = order.value(in.lane[k]);
    return {value, Order::beats(value, Order::weakest()) ? at.index(k) : -1};
  }
  // Member by member, since GCC would choose between addresses, which does not vectorize.
  BARACUDA_HD static State join(const State& a, const State& b) {
    bool beats = Order::beats(b.value, a.value);
    return {beats ? b.value : a.value, beats ? b.index : a.index};
  }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In&, const States& s) const {
    at.store(y, [&](int k) { return order.number(s[k].value); });
    at.store(index, [&](int k) {
      if (s[k].index >= 0) return s[k].index;
      return exclusive && at.is_first(k) ? int32_t(at.count) : at.first_index();
    });
  }
};

// e^x for x <= 0. What it is multiplied by is added to more than it, or less than 1 / |x| of the whole: the error of
// the processor's power of 2 does not show.
template <class Wide>
BARACUDA_HD Wide chunk_of(Wide x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Wide) == 4) {
    float share;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(x * 1.44269504f));
    return share;
  }
#endif
  return exponential<Wide>(x);
}
// e^(less - more), where less is at most more; equal infinities have no difference.
template <class Wide>
BARACUDA_HD Wide exp_of_difference(Wide less, Wide more) {
  return less == more ? Wide(1) : chunk_of(less - more);
}
// The same of numbers and what rounding took from them; `rest` is the difference of that.
template <class Wide>
BARACUDA_HD Wide exp_of_difference(Wide less, Wide more, Wide rest) {
  return chunk_of((less == more ? Wide(0) : less - more) + rest);
}

// log of a sum of at least 1. The processor's logarithm is off by 2^-22 at most, or by three units in the last place.
template <class Wide>
BARACUDA_HD Wide log_of_sum(Wide sum) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Wide) == 4) {
    float log2;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log2) : "f"(sum));
    return log2 * 0.693147181f;
  }
#endif
  return logarithm(sum);
}

// log of the sum of e^x as a maximum and a sum of e^(x - maximum): no overflow, and -inf is no NaN. A gradient raises e
// to differences of results, and so needs what rounding took from them: `rest`.
template <class T>
struct LogCumSumExp {
  using Wide = Accumulator<T>;
  using Element = T;
  struct State {
    Wide most, sum;
  };
  static constexpr int inputs = 1;
  static constexpr Wide near = 8;  // how far below the maximum that it is relative to a sum's logarithm may be
  const T* x;
  T* y;
  Wide* rest;  // null when nobody asks for it

  BARACUDA_HD static State none() { return {-std::numeric_limits<Wide>::infinity(), Wide(0)}; }
  template <class At>
  BARACUDA_HD auto read(const At& at) const {
    return at.load(x);
  }
  template <class At, class In>
  BARACUDA_HD State term(const At&, const In& in, int k) const {
    return {Wide(in.lane[k]), Wide(1)};
  }
  BARACUDA_HD static State join(const State& a, const State& b) {
    bool first = a.most >= b.most;  // not of a NaN, which the share brings into the sum
    Wide most = first ? a.most : b.most, less = first ? b.most : a.most;
    Wide share = exp_of_difference(less, most);
    return {most, first ? a.sum + b.sum * share : b.sum + a.sum * share};
  }
  // Sums relative to one maximum, of ranges that may be joined in any grouping; false where one would be so small
  // that its logarithm would have lost places. `lanes` are those who have the other ranges.
  struct Sums {
    using State = Wide;
    BARACUDA_HD static Wide none() { return 0; }
    BARACUDA_HD static Wide join(Wide a, Wide b) { return a + b; }
  };
  template <int K, class Lanes>
  BARACUDA_HD static bool align(const State (&s)[K], const Lanes& lanes, Wide& most, Wide (&sums)[K]) {
    Wide least = std::numeric_limits<Wide>::infinity();
    most = -least;
    for (int k = 0; k < K; ++k) {
      most = std::fmax(most, s[k].most);
      if (s[k].sum != 0) least = std::fmin(least, s[k].most);
    }
    most = lanes.largest(most);
    if (!lanes.all(std::isfinite(most) && !(most - least > near))) return false;
    for (int k = 0; k < K; ++k) sums[k] = s[k].sum * chunk_of(s[k].most - most);
    return true;
  }
  // Of neighboring elements, with fewer steps than by joining them: relative to the largest. An infinite one has
  // no differences.
  template <int V>
  BARACUDA_HD State total(const Vector<T, V>& x) const {
    Wide most = Wide(x.lane[0]), sum = Wide(0);
    for (int k = 1; k < V; ++k) most = std::fmax(most, Wide(x.lane[k]));
    Wide from = std::isinf(most) ? Wide(0) : most;
    for (int k = 0; k < V; ++k) sum += chunk_of(Wide(x.lane[k]) - from);
    return {most, sum};
  }
  // What each of neighboring elements sees, in the same way; false where the first ones would be too small for it.
  template <int V>
  BARACUDA_HD bool walk(const Vector<T, V>& x, const State& before, bool exclusive, State (&seen)[V]) const {
    constexpr Wide infinity = std::numeric_limits<Wide>::infinity();
    Wide first = exclusive ? before.most : std::fmax(before.most, Wide(x.lane[0])), most = before.most;
    for (int k = 0; k < V; ++k) most = std::fmax(most, Wide(x.lane[k]));
    if (!(most < infinity) || most - first > near) return false;
    Wide from = most == -infinity ? Wide(0) : most, sum = before.sum * chunk_of(before.most - from);
    for (int k = 0; k < V; ++k) {
      Wide after = sum + chunk_of(Wide(x.lane[k]) - from);
      seen[k] = {from, exclusive ? sum : after};
      sum = after;
    }
    return true;
  }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In&, const States& s) const {
    if (rest == nullptr) return at.store(y, [&](int k) { return T(s[k].most + log_of_sum(s[k].sum)); });
    Wide log[At::lanes];
    for (int k = 0; k < At::lanes; ++k) log[k] = log_of_sum(s[k].sum);
    at.store(y, [&](int k) { return T(s[k].most + log[k]); });
    at.store(rest, [&](int k) { return rest_of(s[k].most, log[k], Wide(T(s[k].most + log[k]))); });
  }
};

// h = a h_before + b. A range is such a step too.
template <class Wide>
struct LinearStep {
  Wide a, b;

  BARACUDA_HD static LinearStep none() { return {Wide(1), Wide(0)}; }
  BARACUDA_HD static LinearStep join(const LinearStep& s, const LinearStep& later) {
    return {later.a * s.a, later.a * s.b + later.b};
  }
};

template <class T>
struct LinearScan : LinearStep<Accumulator<T>> {
  using Wide = Accumulator<T>;
  using Element = T;
  using State = LinearStep<Wide>;
  static constexpr int inputs = 2;
  const T* a;
  const T* b;
  T* h;
  Ranged<T>* ranged;

  template <class At>
  BARACUDA_HD auto read(const At& at) const {
    return Pair{at.load(a), at.load(b)};
  }
  // Before the first element there is nothing to multiply, not even by infinity.
  template <class At, class In>
  BARACUDA_HD State term(const At& at, const In& in, int k) const {
    return {at.is_first(k) ? Wide(0) : Wide(in.first.lane[k]), Wide(in.second.lane[k])};
  }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In&, const States& s) const {
    at.store(h, [&](int k) { return T(s[k].b); });
    store_ranged<T>(at, ranged, [&](int k) { return Ranged<T>(s[k].b); });
  }
};

}  // namespace baracuda
