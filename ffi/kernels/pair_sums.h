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
    PairSums all = *this;
    for (int width = V / 2; width > 0; width /= 2)
      for (int k = 0; k < width; ++k) all.first[k] += all.first[k + width], all.second[k] += all.second[k + width];
    return {{all.first[0]}, {all.second[0]}};
  }
};

}  // namespace baracuda
