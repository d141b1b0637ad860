// What the lattice pattern knows of a sample: so many rows of states, through which its paths lead in order.
#pragma once

#include "scaled.h"

namespace baracuda {

struct LatticeSample {
  int rows, states;

  // The first row of which sums over the paths before it are made in the second half of the work.
  BARACUDA_HD int middle() const { return rows / 2; }
};

// The part that paths have in the sum over all, which is 1 at most. Of no paths it is 0.
template <class T>
struct Share {
  T inverse, e;

  explicit BARACUDA_HD Share(Scaled<T> total) {
    Scaled<T> all = normalized(total);
    inverse = all.m == 0 ? T(0) : 1 / all.m;
    e = all.e;
  }
  BARACUDA_HD T of(Scaled<T> paths) const { return paths.m * inverse * power_of_2(paths.e - e); }
};

}  // namespace baracuda
