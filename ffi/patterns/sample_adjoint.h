// The adjoint of the sample pattern in images: each element sums what the positions around it have, times their
// weights. A position is in one bin, between elements, and is listed there once for all elements and channels. Within
// a bin positions are in their order; the sum of an element has the entries of the bins around it, row by row.
#pragma once

#include "../kernels/sample_weight.h"
#include "executor.h"

namespace baracuda {

// dy [batches, channels, points], dx [batches, channels, sizes]; the last axis first, a size being 1 beyond `rank`.
// An axis of n elements has n + taps - 1 bins: that of element i and what is up to the next is bin i + taps / 2.
struct SampleAdjointShape {
  int64_t batches, channels, points;
  int rank, taps;
  int32_t sizes[3];

  BARACUDA_HD int64_t elements() const { return int64_t(sizes[0]) * sizes[1] * sizes[2]; }
  BARACUDA_HD int taps_of(int a) const { return a < rank ? taps : 1; }
  BARACUDA_HD int64_t bins_of(int a) const { return sizes[a] + taps_of(a) - 1; }
  BARACUDA_HD int64_t bins() const { return bins_of(0) * bins_of(1) * bins_of(2); }
};

// A position in its image, the last axis first.
template <class Sum>
struct alignas(4 * sizeof(Sum)) SampleEntry {
  Sum at[3];
  uint32_t point;
};

// Elements y, ..., end - 1 of a column of a plane.
struct SampleStrip {
  int32_t x, y, end, z;
};

// How an image is cut into strips of so many elements.
struct SampleStrips {
  int32_t length, of_column;
  int64_t count;  // of an image

  SampleStrips(const SampleAdjointShape& shape, int32_t length)
      : length(length), of_column(int32_t(ceil_div(shape.sizes[1], length))) {
    count = int64_t(of_column) * shape.sizes[0] * shape.sizes[2];
  }
  BARACUDA_HD SampleStrip at(const SampleAdjointShape& shape, int64_t i) const {
    uint32_t row = uint32_t(i) / uint32_t(shape.sizes[0]), z = row / uint32_t(of_column);
    int32_t y = int32_t(row - z * uint32_t(of_column)) * length, end = y + length;
    return {int32_t(i - int64_t(row) * shape.sizes[0]), y, end < shape.sizes[1] ? end : shape.sizes[1], int32_t(z)};
  }
};

// The sums of the elements of a column that a row of bins gives to, for C channels. A row gives to as many elements as
// there are taps, of which the first is then complete.
template <int C, class Weight, class Sum>
struct SampleSums {
  static constexpr int taps = Weight::taps;
  Sum sum[taps][C] = {};

  // What an entry of row `row` gives: its weights along the column, each times that along the other axes.
  static BARACUDA_HD void weights_of(const SampleAdjointShape& shape, const SampleStrip& strip, int32_t row,
                                     const SampleEntry<Sum>& entry, Sum (&weight)[taps]) {
    Sum others = Weight::of(std::abs(entry.at[0] - Sum(strip.x)));
    if (shape.rank > 2) others *= Weight::of(std::abs(entry.at[2] - Sum(strip.z)));
    BARACUDA_UNROLL
    for (int t = 0; t < taps; ++t) {
      Sum along = shape.rank > 1 ? Weight::of_tap(t, std::abs(entry.at[1] - Sum(row - taps + 1 + t))) : Sum(1);
      weight[t] = others * along;
    }
  }
  BARACUDA_HD void next_row() {
    BARACUDA_UNROLL
    for (int t = 0; t < taps; ++t) BARACUDA_UNROLL
    for (int c = 0; c < C; ++c) sum[t][c] = t + 1 < taps ? sum[t + 1][c] : Sum(0);
  }
};

}  // namespace baracuda
