// Numbers of columns or of channels.
#pragma once

#include "number.h"

namespace baracuda {

// Numbers of columns: of T, or as they are computed with. On a CPU they always are the latter, and not null: loops with
// conditions do not vectorize.
template <class T>
struct ColumnNumbers {
  using Wide = Accumulator<T>;
  const T* narrow = nullptr;
  const Wide* wide = nullptr;  // where it is null, `narrow` has them

  template <int V>
  BARACUDA_HD Vector<Wide, V> read(int64_t position) const {
#ifdef __CUDACC__
    if (!wide) {
      Vector<Wide, V> value;
      if (narrow) {
        Vector<T, V> stored = load<V>(narrow + position);
        for (int k = 0; k < V; ++k) value.lane[k] = Wide(stored.lane[k]);
      } else {
        for (int k = 0; k < V; ++k) value.lane[k] = Wide(0);
      }
      return value;
    }
#endif
    return load<V>(wide + position);
  }
};

}  // namespace baracuda
