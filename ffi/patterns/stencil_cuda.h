// The stencil pattern on a CUDA grid: along rows with the channels first, and along channels that are last. Gradients
// of weights are added in the order of ranges.
#pragma once

#include <algorithm>

#include "stencil_channels_cuda.h"
#include "stencil_rows_cuda.h"

namespace baracuda {
namespace internal {

// Calls run(taps): the usual width of 4 or less has fewer registers.
template <class Run>
Status by_taps(int width, const Run& run) {
  if (width <= 4) return run(std::integral_constant<int, 4>{});
  return run(std::integral_constant<int, most_taps>{});
}

// Calls run(kind).
template <int taps, class T, class Run>
Status by_kind(const CausalConv<T>& conv, const Run& run) {
  if (conv.starts) return run(StencilKind<true, false>{});
  if (conv.shape.width == taps) return run(StencilKind<false, true>{});
  return run(StencilKind<false, false>{});
}

// So many ranges of at least `least` elements along sequences that `rows` warps would leave the GPU partly idle.
inline int64_t stencil_ranges(int64_t length, int64_t rows, int64_t least, int64_t enough = 8192) {
  int64_t most = std::max<int64_t>(1, length / least);
  return std::clamp<int64_t>(ceil_div(enough, std::max<int64_t>(rows, 1)), 1, most);
}

}  // namespace internal

template <class T>
Status stencil(const Executor& executor, const CausalConv<T>& conv, T* y) {
  using namespace internal;
  constexpr int most = 16 / sizeof(T);
  const StencilShape& shape = conv.shape;
  if (shape.rows() * shape.length == 0) return {};
  int64_t neighbors = shape.channels_last ? shape.channels : shape.length;
  return by_taps(shape.width, [&](auto taps_of) {
    constexpr int taps = decltype(taps_of)::value;
    auto run = [&](auto width) {
      constexpr int V = decltype(width)::value;
      int64_t vectors = neighbors / V, ranges = 1;
      int positions = stencil_range;
      if (shape.channels_last) {
        auto threads = [&] { return vectors * shape.sequences() * ceil_div(shape.length, positions); };
        while (positions > taps && threads() < stencil_enough_threads) positions /= 2;
        ranges = ceil_div(shape.length, positions);
      }
      int64_t total = vectors * (shape.channels_last ? shape.sequences() * ranges : shape.rows());
      int64_t blocks = ceil_div(total, stencil_block);
      if (!is_grid(blocks)) return too_large();
      if (shape.channels_last) {
        stencil_channels<taps, V>
            <<<unsigned(blocks), stencil_block, 0, executor.stream>>>(conv, y, vectors, ranges, positions, total);
        return launched();
      }
      // Where at most a fifth of a row's vectors are not there, and there are enough warps.
      constexpr int64_t of_warp = 32 * V * stencil_steps, enough = 4096;
      int64_t of_row = ceil_div(shape.length, of_warp), warps = of_row * shape.rows();
      if (5 * shape.length >= 4 * of_row * of_warp && warps >= enough)
        return by_kind<taps>(conv, [&](auto kind) {
          stencil_long_rows<decltype(kind), taps, V>
              <<<unsigned(ceil_div(warps, stencil_block / 32)), stencil_block, 0, executor.stream>>>(conv, y, of_row,
                                                                                                     warps);
          return launched();
        });
      stencil_rows<taps, V><<<unsigned(blocks), stencil_block, 0, executor.stream>>>(conv, y, vectors, total);
      return launched();
    };
    // A window of eight and as many factors for each of eight channels would not be in registers.
    constexpr int V = taps > 4 ? std::max(1, most / 2) : most;
    return neighbors % V == 0 ? run(std::integral_constant<int, V>{}) : run(std::integral_constant<int, 1>{});
  });
}

template <class T>
Status stencil_backward(Executor executor, const CausalConv<T>& conv, const T* dy, T* dx, T* dweight, T* dbias,
                        T* dstate) {
  using namespace internal;
  constexpr int most = 16 / sizeof(T);
  const StencilShape& shape = conv.shape;
  if (shape.groups * shape.channels == 0) return {};
  return by_taps(shape.width, [&](auto taps_of) {
    constexpr int taps = decltype(taps_of)::value, warps = stencil_block / 32;
    StencilParts<T> parts{};
    auto have_parts = [&](int64_t count) {
      parts.parts = count;
      parts.sums = executor.scratch<Accumulator<T>>(shape.groups * count * (taps + 1) * shape.channels);
      return parts.sums != nullptr;
    };
    auto rows = [&](auto width) {
      constexpr int V = decltype(width)::value;
      constexpr int64_t enough = 16384;  // warps
      // By the shape of one group: results are the same in any company.
      RowRanges of{};
      int64_t step = 32 * V, steps = std::max<int64_t>(1, ceil_div(shape.length, step));
      int64_t wanted = stencil_ranges(shape.length, shape.batches * shape.channels, 4 * step);
      of.steps = int(ceil_div(steps, wanted));
      int64_t ranges = ceil_div(steps, of.steps), most_splits = std::max<int64_t>(1, shape.batches);
      int64_t splits = std::min(ceil_div(enough, shape.channels * ranges), most_splits);
      of.batches = ceil_div(most_splits, splits), splits = ceil_div(shape.batches, of.batches);
      if (!have_parts(splits * ranges)) return small_workspace;
      int64_t all = shape.groups * splits * shape.channels * ranges;
      if (!is_grid(all)) return too_large();
      if (!all) return Status{};
      of.ranges = uint32_t(ranges), of.splits = uint32_t(splits);
      return by_kind<taps>(conv, [&](auto kind) {
        stencil_rows_backward<decltype(kind), taps, V>
            <<<unsigned(all), 32, 0, executor.stream>>>(conv, dy, dx, dstate, parts, of);
        return launched();
      });
    };
    auto channels = [&](auto width) {
      constexpr int V = decltype(width)::value;
      int64_t tiles = ceil_div(shape.channels, 32 * V);
      int64_t of_position = shape.batches * tiles;
      int64_t wanted = std::max(stencil_ranges(shape.length, of_position, 64),
                                stencil_ranges(shape.length, of_position, 16, 132 * warps));
      int64_t positions = ceil_div(std::max<int64_t>(1, ceil_div(shape.length, wanted)), taps) * taps;
      int64_t blocks = std::max<int64_t>(1, ceil_div(shape.length, positions * warps));
      if (!have_parts(shape.batches * blocks)) return small_workspace;
      int64_t grid = shape.sequences() * blocks * tiles;
      if (!is_grid(grid)) return too_large();
      if (grid)
        stencil_channels_backward<taps, V><<<unsigned(grid), stencil_block, 0, executor.stream>>>(
            conv, dy, dx, dstate, parts, tiles, blocks, positions);
      return launched();
    };
    Status status;
    if (shape.channels_last) {
      // Of each channel there are four arrays of `taps` in registers.
      constexpr int V = std::max(1, std::min(most, (taps > 4 ? 2 : 4) * 4 / int(sizeof(Accumulator<T>))));
      status = shape.channels % V == 0 ? channels(std::integral_constant<int, V>{})
                                       : channels(std::integral_constant<int, 1>{});
    } else {
      status =
          shape.length % most == 0 ? rows(std::integral_constant<int, most>{}) : rows(std::integral_constant<int, 1>{});
    }
    if (!status.ok()) return status;
    return add_stencil_parts(executor, parts.sums, shape.groups, parts.parts, taps + 1, shape.channels,
                             StencilWeights<T>{shape, taps, dweight, dbias});
  });
}

}  // namespace baracuda
