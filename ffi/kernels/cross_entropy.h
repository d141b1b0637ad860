// The gradient of cross entropy of rows with classes.
#pragma once

#include "exponential.h"

namespace baracuda {

// dx[c] = softmax(x)[c] (dnll + dlse) - (c = class) dnll, and 0 in rows without a class, whatever is there. Softmax is
// computed from x and the logarithm of the row's sum of exponentials, lse + rest.
template <class T>
struct CrossEntropyGradient {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = 1;
  static constexpr bool works_on_parameters = false;
  const T* x;
  const int32_t* index;  // the class of a row, or -1
  const Wide *lse, *rest, *dnll, *dlse;
  T* dx;
  int64_t classes;

  struct Row {
    Wide lse, rest, every, own;
    int64_t of_class;  // the element of the row's class
    bool counts;
  };

  template <int>
  BARACUDA_HD Row block(int64_t row) const {
    Wide own = dnll[row];
    return {lse[row], rest[row], own + dlse[row], own, row * classes + index[row], index[row] >= 0};
  }
  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    return load<V>(x + element);
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& values, const Row& row) const {
    Vector<T, V> out;
    int64_t left = row.of_class - element;
    int at = left >= 0 && left < V ? int(left) : V;
    for (int k = 0; k < V; ++k) {
      Wide z = Wide(values.lane[k]);
      Wide weight = exponential_up_to_rounding<T>((z - row.lse) - row.rest);
      weight = z == -std::numeric_limits<Wide>::infinity() ? Wide(0) : weight;
      Wide slope = weight * row.every - (k == at ? row.own : Wide(0));
      out.lane[k] = T(row.counts ? slope : Wide(0));
    }
    store<V>(dx + element, out);
  }
};

}  // namespace baracuda
