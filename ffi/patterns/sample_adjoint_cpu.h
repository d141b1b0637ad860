// The adjoint of the sample pattern on CPU threads: a task lists the positions of an image by bins; then each task has
// some strips of columns and some channels. A strip goes down the rows of bins, and reads an entry once for all
// elements that it gives to.
#pragma once

#include <algorithm>
#include <vector>

#include "sample_adjoint.h"

namespace baracuda {
namespace internal {

// Entries in the order of bins, those of a bin in their own order; `offsets` are zeros, a word more than there are
// bins and one more.
template <class Sum>
void order_by_bins(const SampleAdjointShape& shape, const int32_t* bins, const Sum* positions, uint32_t* offsets,
                   SampleEntry<Sum>* entries) {
  for (int64_t point = 0; point < shape.points; ++point)
    if (bins[point] >= 0) ++offsets[bins[point] + 2];
  for (int64_t bin = 2; bin < shape.bins() + 2; ++bin) offsets[bin] += offsets[bin - 1];
  // Where a bin ends is where its next entry is, until all are there.
  for (int64_t point = 0; point < shape.points; ++point) {
    if (bins[point] < 0) continue;
    SampleEntry<Sum>& entry = entries[offsets[bins[point] + 1]++];
    entry.point = uint32_t(point);
    for (int a = 0; a < shape.rank; ++a) entry.at[a] = positions[a * shape.points + point];
  }
}

// The sums of a strip in C channels, from that of which `from` is the plane.
template <int C, class Weight, class Sum, class T>
void sum_strip(const SampleAdjointShape& shape, const SampleStrip& strip, const uint32_t* offsets,
               const SampleEntry<Sum>* entries, const T* from, T* to) {
  constexpr int taps = Weight::taps;
  int64_t of_row = shape.bins_of(0), of_plane = of_row * shape.bins_of(1), elements = shape.elements();
  int taps_of_y = shape.taps_of(1), taps_of_z = shape.taps_of(2);
  to += (int64_t(strip.z) * shape.sizes[1] + strip.y) * shape.sizes[0] + strip.x;
  SampleSums<C, Weight, Sum> sums;
  for (int32_t row = strip.y; row < strip.end + taps_of_y - 1; ++row) {
    for (int tap = 0; tap < taps_of_z; ++tap) {
      const uint32_t* first = offsets + (strip.z + tap) * of_plane + row * of_row + strip.x;
      for (uint32_t k = first[0]; k < first[taps]; ++k) {
        Sum weight[taps];
        sums.weights_of(shape, strip, row, entries[k], weight);
        const T* value = from + entries[k].point;
        for (int c = 0; c < C; ++c)
          for (int t = 0; t < taps; ++t) sums.sum[t][c] += weight[t] * Sum(value[c * shape.points]);
      }
    }
    if (row >= strip.y + taps_of_y - 1) {
      for (int c = 0; c < C; ++c) to[c * elements] = T(sums.sum[0][c]);
      to += shape.sizes[0];
    }
    sums.next_row();
  }
}

template <int C, class Weight, class Sum, class T>
void sum_strips(const Executor& executor, const SampleAdjointShape& shape, const uint32_t* offsets, int64_t words,
                const SampleEntry<Sum>* entries, const T* dy, T* dx) {
  constexpr int32_t length = 16;
  constexpr int64_t width = 32;  // strips of a task
  SampleStrips strips(shape, length);
  int64_t tiles = ceil_div(strips.count, width), chunks = ceil_div(shape.channels, C);
  int64_t each = Weight::taps * shape.taps_of(2) * (ceil_div(shape.points, shape.elements()) + 1);
  parallel_for(executor, shape.batches * chunks * tiles, width * length * C * each, [&](int64_t task) {
    int64_t tile = task % tiles, chunk = task / tiles % chunks, batch = task / tiles / chunks;
    // The last chunk has channels of the one before, where there are fewer left: their sums are the same.
    int64_t plane = batch * shape.channels + std::min(chunk * C, shape.channels - C);
    for (int64_t i = tile * width, end = std::min(i + width, strips.count); i < end; ++i)
      sum_strip<C, Weight>(shape, strips.at(shape, i), offsets + batch * words, entries + batch * shape.points,
                           dy + plane * shape.points, dx + plane * shape.elements());
  });
}

}  // namespace internal

template <class Weight, class Sum, class T>
Status sample_adjoint(const Executor& executor, const SampleAdjointShape& shape, const int32_t* bins,
                      const Sum* positions, const T* dy, T* dx) {
  constexpr int many = 8;
  int64_t words = shape.bins() + 2;
  std::vector<uint32_t> offsets(shape.batches * words);
  std::vector<SampleEntry<Sum>> entries(shape.batches * shape.points);
  parallel_for(executor, shape.batches, 4 * (shape.points + words), [&](int64_t batch) {
    internal::order_by_bins(shape, bins + batch * shape.points, positions + batch * shape.rank * shape.points,
                            offsets.data() + batch * words, entries.data() + batch * shape.points);
  });
  auto sum = [&](auto channels) {
    internal::sum_strips<channels.value, Weight>(executor, shape, offsets.data(), words, entries.data(), dy, dx);
  };
  if (shape.channels < many)
    sum(std::integral_constant<int, 1>());
  else
    sum(std::integral_constant<int, many>());
  return {};
}

}  // namespace baracuda
