// The reduction to the logarithm of a sum of exponentials.
#pragma once

#include "../exponential.h"
#include "../greater.h"
#include "../rest.h"
#include "lanes.h"

namespace baracuda {

// The greater, NaN where one is.
template <class Wide>
BARACUDA_HD Wide largest(Wide a, Wide b) {
  if constexpr (has_extreme_instructions && sizeof(Wide) == 4) return greater(a, b);
  return ((b > a) | (b != b)) ? b : a;
}

// log(sum of e^x): the largest x, and the sum of e^(x - largest). Where that is not finite it is the result. A
// gradient raises e to differences from the result, and so needs what rounding took from it: `rest`, 0 where it is not
// finite.
template <class T>
struct ReduceLogSumExp {
  using Element = T;
  using Wide = Comparable<T>;
  using Limits = std::numeric_limits<Wide>;
  template <int V>
  using State = LanePair<Wide, Wide, V>;
  T* y;
  Wide* rest;  // null when nobody asks for it

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.first[k] = -Limits::infinity(), s.second[k] = 0;
  }
  // What is taken from the exponents: -inf has no difference from itself.
  static BARACUDA_HD Wide base(Wide most) { return most == -Limits::infinity() ? Wide(0) : most; }
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    Wide from[V];
    for (int k = 0; k < V; ++k) from[k] = s.first[k];
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) from[k] = largest(from[k], Wide(x(i, k)));
    rescale(s, from);
    // One lane's sums, of which each would wait for the one before, are several.
    constexpr int sums = V == 1 && n % 4 == 0 ? 4 : 1;
    Wide sum[sums][V] = {};
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) sum[i % sums][k] += exponential<T>(Wide(x(i, k)) - from[k]);
    for (int j = 0; j < sums; ++j)
      for (int k = 0; k < V; ++k) s.second[k] += sum[j][k];
  }
  // To the largest of more elements, which then is what is taken from them.
  template <int V>
  static BARACUDA_HD void rescale(State<V>& s, Wide (&most)[V]) {
    for (int k = 0; k < V; ++k) {
      Wide before = s.first[k];
      s.first[k] = most[k], most[k] = base(most[k]);
      s.second[k] *= exponential<T>(before - most[k]);
    }
  }
  // Takes the largest element of several states, so that they are merged without exponentials.
  template <int V, class OfAll>
  BARACUDA_HD void agree(State<V>& s, const OfAll& of_all) const {
    Wide from[V];
    for (int k = 0; k < V; ++k) from[k] = of_all(s.first[k], [](Wide a, Wide b) { return largest(a, b); });
    rescale(s, from);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) {
      if (s.first[k] == other.first[k]) {
        s.second[k] += other.second[k];
        continue;
      }
      Wide most = largest(s.first[k], other.first[k]), from = base(most);
      s.second[k] =
          s.second[k] * exponential<T>(s.first[k] - from) + other.second[k] * exponential<T>(other.first[k] - from);
      s.first[k] = most;
    }
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<T, V> out;
    Wide more[V];
    for (int k = 0; k < V; ++k) {
      bool is_finite = s.first[k] - s.first[k] == 0;
      more[k] = is_finite ? logarithm(s.second[k]) : Wide(0);
      out.lane[k] = T(s.first[k] + more[k]);
    }
    store<V>(y + element, out);
    if (rest == nullptr) return;
    for (int k = 0; k < V; ++k) rest[element + k] = rest_of(s.first[k], more[k], Wide(out.lane[k]));
  }
};

}  // namespace baracuda
