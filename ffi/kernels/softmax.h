// Softmax of rows and its logarithm. They are projections (see sparsemax.h) of one step: the threshold is the sum of
// exponentials.
#pragma once

#include "exponential.h"
#include "rest.h"
#include "row_sums.h"
#include "widened.h"

namespace baracuda {

// What gradients read of a row: the logarithm of its sum of exponentials, and what rounding took from it. Null where
// nothing is saved.
template <class T>
struct SavedLogSum {
  using Wide = Accumulator<T>;
  T* y;
  Wide* rest;

  BARACUDA_HD void store(int64_t row, Wide largest, Wide log) const {
    if (!y) return;
    y[row] = T(largest + log), rest[row] = rest_of(largest, log, Wide(y[row]));
  }
};

// y = e^z / sum(e^z). Exponentials are computed once.
template <class T>
struct Softmax {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr Wide scale = 1;
  static constexpr int steps = 1;
  const T* x;
  T* y;
  SavedLogSum<T> saved;

  static BARACUDA_HD Wide part(Wide z) { return exponential<T>(z); }
  static BARACUDA_HD void push(Wide power, Wide, Wide& sum, Wide&) { sum += power; }
  static BARACUDA_HD Wide next(Wide, Wide sum, Wide) { return 1 / sum; }
  static BARACUDA_HD T value(Wide power, Wide factor) { return T(power * factor); }
  BARACUDA_HD void finish(int64_t row, Wide largest, Wide factor) const {
    saved.store(row, largest, -std::log(factor));
  }
};

// y = z - log(sum(e^z)).
template <class T>
struct LogSoftmax {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr Wide scale = 1;
  static constexpr int steps = 1;
  const T* x;
  T* y;
  SavedLogSum<T> saved;

  static BARACUDA_HD Wide part(Wide z) { return z; }
  static BARACUDA_HD void push(Wide z, Wide, Wide& sum, Wide&) { sum += exponential<T>(z); }
  static BARACUDA_HD Wide next(Wide, Wide sum, Wide) { return std::log(sum); }
  static BARACUDA_HD T value(Wide z, Wide log) { return T(z - log); }
  BARACUDA_HD void finish(int64_t row, Wide largest, Wide log) const { saved.store(row, largest, log); }
};

// The weight of an element in its row's gradient: softmax, from the element and what was saved of the row.
template <class T>
struct SoftmaxWeight {
  using Wide = Accumulator<T>;
  const T* y;
  const Wide* rest;
  Wide row_y, row_rest;

  BARACUDA_HD SoftmaxWeight at(int64_t row) const { return {y, rest, Wide(y[row]), rest[row]}; }
  BARACUDA_HD Wide of(Wide x) const { return exponential_below<T>(x, row_y, row_rest); }
#ifdef __CUDACC__
  // Of neighbors: where the row's logarithm is finite they need no checks. Of 16 bits, where it is not great either,
  // one instruction has the exponent of 2, to 2^-13.
  template <int V, class Body>
  __device__ void each(const Vector<T, V>& x, const Body& body) const {
    constexpr Wide most = is_half<T> ? Wide(1024) : std::numeric_limits<Wide>::max();
    if (std::fabs(row_y) <= most) {
#pragma unroll
      for (int k = 0; k < V; ++k) {
        if constexpr (is_half<T>)
          body(k, power_of_two(std::fma(widened(x.lane[k]), log2_of_e, -log2_of_e * (row_y + row_rest))));
        else
          body(k, exponential<T>((Wide(x.lane[k]) - row_y) - row_rest));
      }
    } else {
#pragma unroll
      for (int k = 0; k < V; ++k) body(k, of(Wide(x.lane[k])));
    }
  }
#endif
};

}  // namespace baracuda
