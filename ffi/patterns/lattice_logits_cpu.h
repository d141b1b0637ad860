// Rows of logits on a CPU thread, as the lattices of labels read them.
#pragma once

#include <algorithm>

#include "../kernels/label_targets.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int lattice_lanes = 16;

// The sum of f(i), and the largest, of i < count, in lanes.
template <class T, class Of>
T lattice_sum(int64_t count, const Of& of) {
  T sums[lattice_lanes] = {}, total = 0;
  int64_t i = 0;
  for (; i + lattice_lanes <= count; i += lattice_lanes)
    for (int k = 0; k < lattice_lanes; ++k) sums[k] += of(i + k);
  for (; i < count; ++i) total += of(i);
  for (int k = 0; k < lattice_lanes; ++k) total += sums[k];
  return total;
}
template <class T, class Of>
T lattice_largest(int64_t count, const Of& of) {
  T most[lattice_lanes], total = minus_infinity<T>;
  for (int k = 0; k < lattice_lanes; ++k) most[k] = total;
  int64_t i = 0;
  for (; i + lattice_lanes <= count; i += lattice_lanes)
    for (int k = 0; k < lattice_lanes; ++k) most[k] = larger(most[k], T(of(i + k)));
  for (; i < count; ++i) total = larger(total, T(of(i)));
  for (int k = 0; k < lattice_lanes; ++k) total = larger(total, most[k]);
  return total;
}

// What the scores of a row are normalized by.
template <class T>
LogitBase<Accumulator<T>> lattice_base(const T* x, int64_t classes, bool is_log) {
  using Wide = Accumulator<T>;
  if (is_log) return {0, 0};
  Wide most = lattice_largest<Wide>(classes, [&](int64_t c) { return Wide(x[c]); });
  Wide total = lattice_sum<Wide>(classes, [&](int64_t c) { return exponential<T>(Wide(x[c]) - most); });
  return {most, std::log(total)};
}

// The probabilities of the classes, or 0 where the scores are logarithms, whose derivative has no such term.
template <class T>
void lattice_probabilities(const T* x, int64_t classes, bool is_log, LogitBase<Accumulator<T>> base,
                           Accumulator<T>* row) {
  if (is_log) return void(std::fill_n(row, classes, Accumulator<T>(0)));
  BARACUDA_INDEPENDENT
  for (int64_t c = 0; c < classes; ++c) row[c] = exponential<T>(base.log_probability(Accumulator<T>(x[c])));
}

}  // namespace internal
}  // namespace baracuda
