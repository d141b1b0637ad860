// The stencil pattern with windows, on CPU threads.
//
// Sums for weights are added by rows, which are in chunks by the shape of one channel, and then by chunks and batches.
#pragma once

#include <algorithm>
#include <vector>

#include "../kernels/depthwise.h"
#include "executor.h"
#include "stencil_window_channels_cpu.h"
#include "stencil_window_planes_cpu.h"

namespace baracuda {
namespace internal {

// What tasks share: chunks of the rows of a plane, where there are too few planes for many threads.
struct RowChunks {
  int64_t count;
  RowChunks(int64_t planes, int64_t rows)
      : count(std::clamp<int64_t>(ceil_div(32, std::max<int64_t>(planes, 1)), 1, std::max<int64_t>(1, rows / 8))) {}
  int64_t begin(int64_t chunk, int64_t rows) const { return chunk * rows / count; }
};

// dweight and dbias, of the sums [groups, parts, taps + 1, outputs], or with the channels first [groups, parts,
// outputs, taps + 1].
template <class T>
void add_weight_parts(const Executor& executor, const DepthwiseShape& shape, const Accumulator<T>* sums, int64_t parts,
                      T* dweight, T* dbias) {
  int64_t taps = shape.taps(), outputs = shape.outputs();
  parallel_for(executor, shape.groups * outputs, parts * (taps + 1), [&](int64_t task) {
    int64_t group = task / outputs, output = task % outputs;
    for (int64_t t = 0; t <= taps; ++t) {
      Accumulator<T> total = 0;
      for (int64_t part = 0; part < parts; ++part)
        total += shape.channels_last ? sums[((group * parts + part) * (taps + 1) + t) * outputs + output]
                                     : sums[((group * parts + part) * outputs + output) * (taps + 1) + t];
      (t == taps ? dbias[task] : dweight[shape.weight_index(group, output, t)]) = T(total);
    }
  });
}

}  // namespace internal

template <class T>
Status stencil_window(const Executor& executor, const Depthwise<T>& conv, const T* bias, T* y) {
  using namespace internal;
  const DepthwiseShape& shape = conv.shape;
  int64_t rows = shape.out[0] * shape.out[1];
  if (shape.sequences() * shape.outputs() * shape.out_plane() == 0) return {};
  if (!shape.channels_last) {
    RowChunks chunks(shape.batches * shape.outputs(), rows);
    int64_t planes = shape.sequences() * shape.outputs();
    parallel_for(executor, planes * chunks.count, shape.out_plane() / chunks.count * (shape.taps() + 8) / 4,
                 [&](int64_t task) {
                   int64_t plane = task / chunks.count, chunk = task % chunks.count;
                   convolve_rows(conv, plane, chunks.begin(chunk, rows), chunks.begin(chunk + 1, rows), bias, y);
                 });
    return {};
  }
  int64_t tiles = ceil_div(shape.channels, channel_lanes);
  RowChunks chunks(shape.batches * tiles, rows);
  parallel_for(executor, shape.sequences() * tiles * chunks.count,
               shape.out_plane() / chunks.count * shape.multiplier * (shape.taps() + 8) * channel_lanes / 4,
               [&](int64_t task) {
                 int64_t chunk = task % chunks.count, tile = task / chunks.count % tiles;
                 StencilChannelTile<T>(conv, task / chunks.count / tiles, tile * channel_lanes)
                     .forward(chunks.begin(chunk, rows), chunks.begin(chunk + 1, rows), bias, y);
               });
  return {};
}

template <class T>
Status stencil_window_backward(Executor executor, const Depthwise<T>& conv, const T* dy, T* dx, T* dweight, T* dbias) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const DepthwiseShape& shape = conv.shape;
  int64_t y_rows = shape.out[0] * shape.out[1], x_rows = shape.in[0] * shape.in[1], taps = shape.taps();
  int64_t tiles = shape.channels_last ? ceil_div(shape.channels, channel_lanes) : shape.channels;
  RowChunks chunks(shape.batches * tiles, std::min(y_rows, x_rows));
  int64_t parts = shape.batches * chunks.count;
  std::vector<Wide> sums(shape.groups * parts * (taps + 1) * shape.outputs());
  AxisHits depth(shape, 0), height(shape, 1), width(shape, 2);
  const AxisHits first_two[] = {depth, height}, all[] = {depth, height, width};
  int64_t lanes = shape.channels_last ? channel_lanes : 1;
  parallel_for(executor, shape.sequences() * tiles * chunks.count,
               (shape.in_plane() + shape.out_plane()) / chunks.count * shape.multiplier * (taps + 8) * lanes / 4,
               [&](int64_t task) {
                 int64_t chunk = task % chunks.count, tile = task / chunks.count % tiles,
                         sequence = task / chunks.count / tiles;
                 int64_t part = sequence * chunks.count + chunk;
                 int64_t y_begin = chunks.begin(chunk, y_rows), y_end = chunks.begin(chunk + 1, y_rows);
                 int64_t x_begin = chunks.begin(chunk, x_rows), x_end = chunks.begin(chunk + 1, x_rows);
                 if (shape.channels_last) {
                   StencilChannelTile<T> of_tile(conv, sequence, tile * channel_lanes);
                   of_tile.dweight(y_begin, y_end, dy, &sums[part * (taps + 1) * shape.outputs()]);
                   of_tile.dx(x_begin, x_end, all, dy, dx);
                   return;
                 }
                 StencilPlane<T> plane(conv);
                 for (int64_t m = 0; m < shape.multiplier; ++m) {
                   int64_t output = tile * shape.multiplier + m;
                   plane.dweight(sequence * shape.outputs() + output, y_begin, y_end, dy,
                                 &sums[(part * shape.outputs() + output) * (taps + 1)]);
                 }
                 int64_t x_plane = sequence * shape.channels + tile;
                 if (plane.is_finite(x_plane)) {
                   bool is_dense = shape.multiplier == 1 && shape.stride[0] * shape.stride[1] * shape.stride[2] == 1;
                   return is_dense ? convolve_rows_back(conv, x_plane, x_begin, x_end, dy, dx)
                                   : plane.dx(x_plane, x_begin, x_end, first_two, dy, dx);
                 }
                 for (int64_t i = x_begin * shape.in[2]; i < x_end * shape.in[2]; ++i)
                   dx[x_plane * shape.in_plane() + i] =
                       conv.template dx_at<1>(dy, sequence, tile, PlanePosition(i, shape.in)).lane[0];
               });
  add_weight_parts(executor, shape, sums.data(), parts, dweight, dbias);
  return {};
}

}  // namespace baracuda
