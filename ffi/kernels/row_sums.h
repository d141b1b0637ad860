// Sums over a row: one, or two.
#pragma once

#include "number.h"

namespace baracuda {

// One sum, in V lanes.
template <class Wide, int V>
struct RowSum {
  Wide lane[V];

  BARACUDA_HD void clear() {
    for (int k = 0; k < V; ++k) lane[k] = Wide(0);
  }
  BARACUDA_HD void add(const RowSum& other) {
    for (int k = 0; k < V; ++k) lane[k] += other.lane[k];
  }
  // The sum of all lanes, a power of two.
  BARACUDA_HD RowSum<Wide, 1> merged() const {
    if constexpr (V == 1) {
      return *this;
    } else {
      RowSum<Wide, V / 2> half;
      for (int k = 0; k < V / 2; ++k) half.lane[k] = lane[k] + lane[k + V / 2];
      return half.merged();
    }
  }
};

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
    if constexpr (V == 1) {
      return *this;
    } else {
      PairSums<Wide, V / 2> half;
      for (int k = 0; k < V / 2; ++k)
        half.first[k] = first[k] + first[k + V / 2], half.second[k] = second[k] + second[k + V / 2];
      return half.merged();
    }
  }
};

// What functors of rows share whose state is sums.
template <template <class, int> class Sums, class Wide>
struct OfSums {
  template <int V = 1>
  BARACUDA_HD Sums<Wide, V> start() const {
    Sums<Wide, V> s;
    s.clear();
    return s;
  }
  template <int V>
  BARACUDA_HD void merge(Sums<Wide, V>& s, const Sums<Wide, V>& other) const {
    s.add(other);
  }
};

}  // namespace baracuda
