// The reduction to the variance, or its root.
#pragma once

#include "../inverse_of_count.h"
#include "lanes.h"

namespace baracuda {

// The sum of squared differences from the mean, over a divisor, or the root of that. The first few elements have a mean
// that is reckoned from the first of them, so that equal elements have none but it. Of a few more the sum and the sum
// of squares are reckoned from the mean of those before, and merged with the state (Chan, Golub and LeVeque, Updating
// formulae and a pairwise algorithm for computing sample variances, 1979). What that sum of squares then loses is at
// most a few times what the difference of the means adds to that of all.
template <class T>
struct ReduceVariance {
  using Element = T;
  using Wide = Accumulator<T>;
  template <int V>
  struct State {
    Wide mean[V], rest[V];  // whose sum is the mean, to the digits that elements far from 0 leave a difference
    Wide squares[V], count;
    BARACUDA_HD State<1> lane(int k) const { return {{mean[k]}, {rest[k]}, {squares[k]}, count}; }
    template <int n>
    BARACUDA_HD State<n> lanes(int first) const {
      State<n> s;
      for (int k = 0; k < n; ++k)
        s.mean[k] = mean[first + k], s.rest[k] = rest[first + k], s.squares[k] = squares[first + k];
      s.count = count;
      return s;
    }
  };
  T* y;
  Wide *mean, *wide;  // and y of 16-bit floats before it is rounded; null when nobody asks for them
  Wide divisor;
  bool root;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    s.count = 0;
    for (int k = 0; k < V; ++k) s.mean[k] = 0, s.rest[k] = 0, s.squares[k] = 0;
  }
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    if (s.count == 0) return push_first<V, n>(s, x);
    Wide total = s.count + Wide(n), share = Wide(n) * inverse_of_count(total), weight = s.count * share;
    for (int k = 0; k < V; ++k) {
      Wide mean = s.mean[k];
      Wide sum = added<n>([&](int i) { return Wide(x(i, k)) - mean; });
      Wide squares = added<n>([&](int i) {
        Wide difference = Wide(x(i, k)) - mean;
        return difference * difference;
      });
      Wide apart = sum / Wide(n);
      add(s, k, squares - sum * apart, apart - s.rest[k], share, weight);
    }
    s.count = total;
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    if (s.count == 0) {
      s = other;
      return;
    }
    Wide total = s.count + other.count, share = other.count * inverse_of_count(total), weight = s.count * share;
    for (int k = 0; k < V; ++k)
      add(s, k, other.squares[k], (other.mean[k] - s.mean[k]) + (other.rest[k] - s.rest[k]), share, weight);
    s.count = total;
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<T, V> out;
    Wide value[V];
    for (int k = 0; k < V; ++k) {
      Wide variance = divisor > 0 ? s.squares[k] / divisor : std::numeric_limits<Wide>::quiet_NaN();
      value[k] = root ? std::sqrt(variance) : variance;
      out.lane[k] = T(value[k]);
    }
    store<V>(y + element, out);
    if (mean != nullptr)
      for (int k = 0; k < V; ++k) mean[element + k] = s.mean[k] + (s.rest[k] == s.rest[k] ? s.rest[k] : 0);
    if constexpr (is_half<T>) store_unrounded(wide, element, value);
  }

 private:
  template <int V, int n, class Elements>
  static BARACUDA_HD void push_first(State<V>& s, const Elements& x) {
    for (int k = 0; k < V; ++k) {
      Wide first = Wide(x(0, k));
      Wide apart = added<n>([&](int i) { return Wide(x(i, k)) - first; }) / Wide(n);
      s.squares[k] = added<n>([&](int i) {
        Wide difference = (Wide(x(i, k)) - first) - apart;
        return difference * difference;
      });
      s.mean[k] = first + apart;
      s.rest[k] = apart - (s.mean[k] - first);
    }
    s.count = Wide(n);
  }
  // Elements with this sum of squares, whose mean is a step from the state's, and which are a share of all.
  template <int V>
  static BARACUDA_HD void add(State<V>& s, int k, Wide squares, Wide step, Wide share, Wide weight) {
    s.squares[k] += squares + step * (step * weight);
    Wide before = s.mean[k], rest = s.rest[k] + step * share;
    s.mean[k] = before + rest;
    s.rest[k] = rest - (s.mean[k] - before);
  }
};

}  // namespace baracuda
