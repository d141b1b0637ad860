// The adjoint of the sample pattern in images: each element sums what the positions that read it have, times their
// weights. Positions and weights are those of all channels, listed by element: the index of an entry names its
// position, and lists are in the order of entries, which is the order of sums.
#pragma once

#include "divisor.h"
#include "executor.h"

namespace baracuda {

// dy [batches, channels, points], dx [batches, channels, elements]. `entries` of a batch are whole runs of all points:
// entry e is of point e % points.
struct SampleAdjointShape {
  int64_t batches, channels, points, elements, entries;
};

template <class Sum>
struct alignas(2 * sizeof(Sum)) SampleEntry {
  uint32_t point;
  Sum weight;
};

// The entries of a batch by element: those of element i are at(offsets[i]), ..., at(offsets[i + 1] - 1).
template <class Sum, class Index>
struct SampleEntries {
  const uint32_t *perm, *offsets;
  const Sum* weights;
  Divisor<Index> points;

  BARACUDA_HD SampleEntries of(int64_t batch, const SampleAdjointShape& shape) const {
    return {perm + batch * shape.entries, offsets + batch * (shape.elements + 1), weights + batch * shape.entries,
            points};
  }
  BARACUDA_HD SampleEntry<Sum> at(uint32_t k) const {
    uint32_t entry = perm[k];
    return {entry - uint32_t(points.quotient(Index(entry)) * points.value), weights[entry]};
  }
};

}  // namespace baracuda
