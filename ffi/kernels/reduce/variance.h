// The reduction to the variance, or its root.
#pragma once

#include "lanes.h"

namespace baracuda {

// The sum of squared differences from the mean, over a divisor, or the root of that. A few elements have a mean of
// their own, reckoned from the first of them so that equal elements have none but it; it is joined to the mean of those
// before (Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979).
template <class T>
struct ReduceVariance {
  using Element = T;
  using Wide = Accumulator<T>;
  template <int V>
  struct State {
    double mean[V];  // of which a difference has the digits that elements far from 0 leave it
    Wide squares[V], count;
    BARACUDA_HD State<1> lane(int k) const { return {{mean[k]}, {squares[k]}, count}; }
    template <int n>
    BARACUDA_HD State<n> lanes(int first) const {
      State<n> s;
      for (int k = 0; k < n; ++k) s.mean[k] = mean[first + k], s.squares[k] = squares[first + k];
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
    for (int k = 0; k < V; ++k) s.mean[k] = 0, s.squares[k] = 0;
  }
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    Wide total = s.count + Wide(n), share = Wide(n) / total, weight = s.count * share;
    for (int k = 0; k < V; ++k) {
      Wide first = Wide(x(0, k));
      Wide apart = added<n>([&](int i) { return Wide(x(i, k)) - first; }) / Wide(n);
      Wide squares = added<n>([&](int i) {
        Wide difference = (Wide(x(i, k)) - first) - apart;
        return difference * difference;
      });
      double step = double(first) + double(apart) - s.mean[k];
      s.mean[k] += step * double(share);
      Wide delta = Wide(step);
      s.squares[k] += squares + delta * (delta * weight);
    }
    s.count = total;
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    Wide total = s.count + other.count, share = total > 0 ? other.count / total : Wide(0), weight = s.count * share;
    for (int k = 0; k < V; ++k) {
      double step = other.mean[k] - s.mean[k];
      s.mean[k] += step * double(share);
      Wide delta = Wide(step);
      s.squares[k] += other.squares[k] + delta * (delta * weight);
    }
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
      for (int k = 0; k < V; ++k) mean[element + k] = Wide(s.mean[k]);
    if constexpr (is_half<T>) store_unrounded(wide, element, value);
  }
};

}  // namespace baracuda
