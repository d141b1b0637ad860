// The region pattern on CPU threads: a task has a box and some of its channels.
#pragma once

#include <algorithm>
#include <vector>

#include "region.h"

namespace baracuda {
namespace internal {

// A position of a bin, as it is for all channels.
template <class Sum>
struct RegionPoint {
  RegionPosition<Sum> y, x;
  RegionSample<Sum> sample;
};

// Calls body(box, frame, points, channel, end), the points being all samples of bin 0, then those of bin 1, ...
template <class Sum, class Body>
void for_regions(const Executor& executor, const Regions<Sum>& work, int64_t width, const Body& body) {
  const RegionShape& shape = work.shape;
  int64_t chunks = std::max<int64_t>(1, ceil_div(shape.channels, width)),
          samples = int64_t(shape.samples) * shape.samples;
  int64_t cost = shape.bins() * samples * (8 + 4 * std::min(width, shape.channels));
  parallel_for(executor, shape.batches * shape.boxes * chunks, cost, [&](int64_t task) {
    int64_t box = task / chunks, channel = task % chunks * width;
    RegionFrame<Sum> frame = work.frame(box);
    std::vector<RegionPoint<Sum>> points;
    if (frame.image >= 0) {
      points.reserve(shape.bins() * samples);
      for (int i = 0; i < shape.rows; ++i)
        for (int j = 0; j < shape.columns; ++j)
          for (int s = 0; s < shape.samples; ++s)
            for (int t = 0; t < shape.samples; ++t) {
              auto y = work.row(frame, i, s), x = work.column(frame, j, t);
              points.push_back({y, x, RegionSample<Sum>(y, x, shape.width)});
            }
    }
    body(box, frame, points, channel, std::min(shape.channels, channel + width));
  });
}

}  // namespace internal

// With a tangent, that of y.
template <class Sum, class T>
Status sample_regions(const Executor& executor, const Regions<Sum>& work, const T* x,
                      const RegionTangent<T, Sum>* tangent, T* y) {
  const RegionShape& shape = work.shape;
  int64_t bins = shape.bins(), samples = int64_t(shape.samples) * shape.samples;
  auto of_box = [&](int64_t box, const RegionFrame<Sum>& frame, const auto& points, int64_t channel, int64_t end) {
    for (; channel < end; ++channel) {
      T* to = y + (box * shape.channels + channel) * bins;
      if (frame.image < 0) {
        std::fill_n(to, bins, T(0));
        continue;
      }
      int64_t plane = work.begin(box, frame.image) + channel * shape.plane();
      for (int64_t bin = 0; bin < bins; ++bin) {
        Sum sum = 0;
        for (int64_t k = bin * samples; k < (bin + 1) * samples; ++k) {
          const auto& point = points[k];
          if (!point.sample.is_inside) continue;
          if (tangent == nullptr) {
            sum += point.sample.of(x + plane);
            continue;
          }
          const Sum* moved = tangent->frames + 4 * box;
          Sum along_y, along_x;
          point.sample.slopes(x + plane, point.y, point.x, along_y, along_x);
          sum += point.sample.of(tangent->x + plane) + along_y * (moved[0] + point.y.steps * moved[1]) +
                 along_x * (moved[2] + point.x.steps * moved[3]);
        }
        to[bin] = T(sum / Sum(samples));
      }
    }
  };
  internal::for_regions(executor, work, 32, of_box);
  return {};
}

// The cotangent of the frames, for each bin: moved [batches, boxes, bins, 4].
template <class Sum, class T>
Status region_cotangents(const Executor& executor, const Regions<Sum>& work, const T* x, const T* dy, Sum* moved) {
  const RegionShape& shape = work.shape;
  int64_t bins = shape.bins(), samples = int64_t(shape.samples) * shape.samples;
  auto of_box = [&](int64_t box, const RegionFrame<Sum>& frame, const auto& points, int64_t, int64_t) {
    std::fill_n(moved + box * bins * 4, bins * 4, Sum(0));
    if (frame.image < 0) return;
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      const T* from = x + work.begin(box, frame.image) + channel * shape.plane();
      for (int64_t bin = 0; bin < bins; ++bin) {
        Sum of_result = Sum(dy[(box * shape.channels + channel) * bins + bin]) / Sum(samples);
        Sum* to = moved + (box * bins + bin) * 4;
        for (int64_t k = bin * samples; k < (bin + 1) * samples; ++k) {
          const auto& point = points[k];
          if (!point.sample.is_inside) continue;
          Sum along_y, along_x;
          point.sample.slopes(from, point.y, point.x, along_y, along_x);
          to[0] += of_result * along_y, to[1] += of_result * along_y * point.y.steps;
          to[2] += of_result * along_x, to[3] += of_result * along_x * point.x.steps;
        }
      }
    }
  };
  internal::for_regions(executor, work, std::max<int64_t>(shape.channels, 1), of_box);
  return {};
}

}  // namespace baracuda
