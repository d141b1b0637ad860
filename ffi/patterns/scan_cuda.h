// The scan pattern on a CUDA grid. Slices that are rows of memory are cut into tiles, which a block scans one by one;
// where rows are few and long, parts of them have blocks of their own (scan_parts_cuda.h). Short rows have a few lanes
// each. Slices across memory are scanned by scan_columns_cuda.h.
#pragma once

#include <utility>

#include "scan_columns_cuda.h"
#include "scan_parts_cuda.h"

namespace baracuda {
namespace internal {

// A thread's part of a tile: K spans of V elements. Neighboring threads have neighboring spans.
template <int V, int K, class Functor>
struct ScanTile {
  using State = typename Functor::State;
  int64_t row, first;  // position of the first span
  decltype(std::declval<Functor>().read(ScanRow<V>{})) in[K];

  __device__ int64_t position(int k) const { return first + int64_t(k) * blockDim.x * V; }

  __device__ void read(const Functor& functor, const ScanShape& shape, int64_t of_row, int64_t tile) {
    row = of_row, first = (tile * K * blockDim.x + threadIdx.x) * V;
#pragma unroll
    for (int k = 0; k < K; ++k)
      if (position(k) < shape.count) in[k] = functor.read(shape.row<V>(row, position(k)));
  }
  // What the spans come to.
  __device__ void totals(const Functor& functor, const ScanShape& shape, State (&spans)[K]) const {
#pragma unroll
    for (int k = 0; k < K; ++k)
      spans[k] = position(k) < shape.count ? total_of(functor, shape.row<V>(row, position(k)), in[k]) : Functor::none();
  }
  // `before` is what comes before each span.
  __device__ void write(const Functor& functor, const ScanShape& shape, const State (&before)[K]) const {
#pragma unroll
    for (int k = 0; k < K; ++k)
      if (position(k) < shape.count)
        write_span(functor, shape.row<V>(row, position(k)), in[k], before[k], shape.exclusive);
  }
};

// A block has a row, tile by tile.
template <int V, int K, class Functor>
__global__ void __launch_bounds__(scan_block, 4) scan_rows(Functor functor, ScanShape shape) {
  using State = typename Functor::State;
  __shared__ ScanBlock<K, Functor> block;
  int64_t elements = int64_t(blockDim.x) * V * K;
  State before_tile = Functor::none();
  for (int64_t i = 0; i * elements < shape.count; ++i) {
    ScanTile<V, K, Functor> tile;
    State spans[K];
    tile.read(functor, shape, blockIdx.x, i);
    tile.totals(functor, shape, spans);
    block.scan(int(i), spans, [&](const State& total) {
      State before = before_tile;
      before_tile = Functor::join(before_tile, total);
      return before;
    });
    tile.write(functor, shape, spans);
  }
}

// Rows of at most 32 V elements: a warp has K times as many as it has groups of `lanes` lanes.
template <int V, int K, class Functor>
__global__ void __launch_bounds__(scan_block, 4) scan_short_rows(Functor functor, ScanShape shape, int lanes) {
  using State = typename Functor::State;
  int groups = blockDim.x / lanes, lane = threadIdx.x % lanes;
  int64_t first = int64_t(blockIdx.x) * groups * K + threadIdx.x / lanes, position = lane * V;
  decltype(functor.read(shape.row<V>(0, 0))) in[K];
  auto is_mine = [&](int k) { return position < shape.count && first + k * groups < shape.outer; };
#pragma unroll
  for (int k = 0; k < K; ++k)
    if (is_mine(k)) in[k] = functor.read(shape.row<V>(first + k * groups, position));
#pragma unroll
  for (int k = 0; k < K; ++k) {
    auto at = shape.row<V>(first + k * groups, position);
    State state = Functor::none();
    if (is_mine(k)) state = Functor::join(state, total_of(functor, at, in[k]));  // 0, and not -0, of a first -0
    state = state_above(scan_in_warp<Functor>(state, lanes), 1);
    if (lane == 0) state = Functor::none();
    if (is_mine(k)) write_span(functor, at, in[k], state, shape.exclusive);
  }
}

template <int V, class Functor>
Status scan_rows_by(Executor executor, const Functor& functor, const ScanShape& shape) {
  constexpr int items = sizeof(typename Functor::Element) == 8 || V == 1 ? 8 : 16;
  constexpr int spans = items / V / (Functor::inputs > 2 ? 4 : Functor::inputs);
  constexpr int K = spans > 1 ? spans : 1;
  if (shape.count <= 32 * V) {
    int lanes = 1;
    while (lanes * V < shape.count) lanes *= 2;
    int64_t blocks = ceil_div(shape.outer, scan_block / lanes * K);
    scan_short_rows<V, K><<<unsigned(blocks), scan_block, 0, executor.stream>>>(functor, shape, lanes);
    return launched();
  }
  constexpr int64_t many_rows = 512;
  if (shape.outer < many_rows) {
    // Longer spans where their elements take fewer steps together.
    constexpr int W = V > 1 && HasTotal<Functor, V> ? 2 * V : V;
    Status status;
    if (shape.count % W == 0 && scans_in_parts<W>(executor, functor, shape, status)) return status;
    if (shape.count % W != 0 && scans_in_parts<V>(executor, functor, shape, status)) return status;
  }
  int64_t threads = ceil_div(ceil_div(shape.count, V * K), 32) * 32;
  threads = threads < scan_block ? threads : scan_block;
  scan_rows<V, K><<<unsigned(shape.outer), unsigned(threads), 0, executor.stream>>>(functor, shape);
  return launched();
}

}  // namespace internal

template <class Functor>
Status scan(Executor executor, const Functor& functor, const ScanShape& shape) {
  constexpr int size = sizeof(typename Functor::Element), V = size < 16 ? 16 / size : 1;
  if (shape.elements() == 0) return {};
  if (shape.inner > 1) return internal::scan_columns(executor, functor, shape);
  if (shape.count % V == 0) return internal::scan_rows_by<V>(executor, functor, shape);
  return internal::scan_rows_by<1>(executor, functor, shape);
}

}  // namespace baracuda
