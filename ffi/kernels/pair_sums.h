// Two sums over a row.
#pragma once

#include "number.h"

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

}  // namespace baracuda
