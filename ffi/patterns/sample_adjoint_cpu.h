// The adjoint of the sample pattern on CPU threads: each task has some elements and channels, and reads an entry once
// for all of these.
#pragma once

#include <algorithm>

#include "sample_adjoint.h"

namespace baracuda {

template <class Sum, class Index, class T>
Status sample_adjoint(const Executor& executor, const SampleAdjointShape& shape,
                      const SampleEntries<Sum, Index>& entries, const T* dy, T* dx) {
  constexpr int64_t elements = 64, channels = 16;
  int64_t tiles = ceil_div(shape.elements, elements), chunks = ceil_div(shape.channels, channels);
  int64_t each = ceil_div(shape.entries, std::max<int64_t>(shape.elements, 1)) + 1;
  parallel_for(executor, shape.batches * chunks * tiles, elements * channels * each, [&](int64_t task) {
    int64_t tile = task % tiles, chunk = task / tiles % chunks, batch = task / tiles / chunks;
    int64_t first = tile * elements, width = std::min(elements, shape.elements - first);
    int64_t channel = chunk * channels, count = std::min(channels, shape.channels - channel);
    SampleEntries<Sum, Index> of_batch = entries.of(batch, shape);
    const T* from = dy + (batch * shape.channels + channel) * shape.points;
    Sum sums[channels][elements] = {};
    for (int64_t i = 0; i < width; ++i)
      for (uint32_t k = of_batch.offsets[first + i]; k < of_batch.offsets[first + i + 1]; ++k) {
        auto entry = of_batch.at(k);
        for (int64_t c = 0; c < count; ++c) sums[c][i] += entry.weight * Sum(from[c * shape.points + entry.point]);
      }
    T* to = dx + (batch * shape.channels + channel) * shape.elements + first;
    for (int64_t c = 0; c < count; ++c)
      for (int64_t i = 0; i < width; ++i) to[c * shape.elements + i] = T(sums[c][i]);
  });
  return {};
}

}  // namespace baracuda
