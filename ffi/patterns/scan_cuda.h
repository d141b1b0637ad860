// The scan pattern on a CUDA grid. Lines that are rows of memory are cut into tiles, which a block scans one by one;
// where rows are few and long, parts of them have blocks of their own, and what these come to is formed first. Short
// rows have a few lanes each. Lines across memory are scanned by scan_columns_cuda.h.
#pragma once

#include <utility>

#include "scan_columns_cuda.h"

namespace baracuda {
namespace internal {

// A block's scan of one total for each thread and each of its K spans; span k of all threads comes before span k + 1.
template <int K, class Functor>
struct ScanBlock {
  using State = typename Functor::State;
  static constexpr int most = K * scan_block / 32;  // of warps' totals
  static_assert(most <= 64);

  alignas(16) unsigned char memory[2][most * sizeof(State)];  // in turns: some may still read what was written before

  // What comes before each of the thread's spans, given their totals. `prefix` is called by the first warp, with the
  // total of all, and gives what comes before all.
  template <class Prefix>
  __device__ void scan(int turn, State (&spans)[K], const Prefix& prefix) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    State* totals = reinterpret_cast<State*>(memory[turn % 2]);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      State through = scan_in_warp<Functor>(spans[k]);
      if (lane == 31) totals[k * warps + warp] = through;
      spans[k] = state_above(through, 1);
      if (lane == 0) spans[k] = Functor::none();
    }
    __syncthreads();
    if (warp == 0) {
      int count = K * warps;
      State first = 2 * lane < count ? totals[2 * lane] : Functor::none();
      State second = 2 * lane + 1 < count ? totals[2 * lane + 1] : Functor::none();
      State through = scan_in_warp<Functor>(Functor::join(first, second)), before = state_above(through, 1);
      State all_before = prefix(state_of_lane(through, 31));
      before = lane == 0 ? all_before : Functor::join(all_before, before);
      if (2 * lane < count) totals[2 * lane] = before;
      if (2 * lane + 1 < count) totals[2 * lane + 1] = Functor::join(before, first);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; ++k) spans[k] = Functor::join(totals[k * warps + warp], spans[k]);
  }
};

// A thread's part of a tile: K spans of V cells. Neighbouring threads have neighbouring spans.
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
    for (int k = 0; k < K; ++k) {
      auto at = shape.row<V>(row, position(k));
      spans[k] = Functor::none();
      if (position(k) < shape.count) {
        spans[k] = functor.term(at, in[k], 0);
#pragma unroll
        for (int v = 1; v < V; ++v) spans[k] = Functor::join(spans[k], functor.term(at, in[k], v));
      }
    }
  }
  // `before` is what comes before each span.
  __device__ void write(const Functor& functor, const ScanShape& shape, const State (&before)[K]) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (position(k) >= shape.count) continue;
      auto at = shape.row<V>(row, position(k));
      State seen[V], state = before[k];
#pragma unroll
      for (int v = 0; v < V; ++v) {
        State after = Functor::join(state, functor.term(at, in[k], v));
        seen[v] = shape.exclusive ? state : after;
        state = after;
      }
      functor.write(at, in[k], seen);
    }
  }
};

// A block has a part of a row, tile by tile. Totals are [rows, parts]; a kernel that forms them writes nothing else.
template <int V, int K, class Functor>
__global__ void __launch_bounds__(scan_block, 4)
    scan_rows(Functor functor, ScanShape shape, int64_t parts, int64_t tiles, typename Functor::State* totals,
              bool forms_totals) {
  using State = typename Functor::State;
  __shared__ ScanBlock<K, Functor> block;
  int64_t row = parts == 1 ? blockIdx.x : blockIdx.x / parts, part = blockIdx.x - row * parts;
  int64_t first = part * tiles, cells = int64_t(blockDim.x) * V * K;
  State before_tile = totals && !forms_totals ? totals[blockIdx.x] : Functor::none();
  for (int64_t i = first; i < first + tiles && i * cells < shape.count; ++i) {
    ScanTile<V, K, Functor> tile;
    State spans[K];
    tile.read(functor, shape, row, i);
    tile.totals(functor, shape, spans);
    block.scan(int(i - first), spans, [&](const State& total) {
      State before = before_tile;
      before_tile = Functor::join(before_tile, total);
      return before;
    });
    if (!forms_totals) tile.write(functor, shape, spans);
  }
  if (forms_totals && threadIdx.x == 0) totals[blockIdx.x] = before_tile;
}

// Rows of at most 32 V cells: a warp has K times as many as it has groups of `lanes` lanes.
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
    if (is_mine(k))
#pragma unroll
      for (int v = 0; v < V; ++v) state = Functor::join(state, functor.term(at, in[k], v));
    state = state_above(scan_in_warp<Functor>(state, lanes), 1);
    if (lane == 0) state = Functor::none();
    if (!is_mine(k)) continue;
    State seen[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      State after = Functor::join(state, functor.term(at, in[k], v));
      seen[v] = shape.exclusive ? state : after;
      state = after;
    }
    functor.write(at, in[k], seen);
  }
}

// Rows of totals that are to be replaced by what comes before them.
template <class Functor>
Status scan_totals(const Executor& executor, typename Functor::State* totals, const ScanShape& shape) {
  constexpr int K = 4;
  int64_t threads = ceil_div(ceil_div(shape.count, K), 32) * 32;
  threads = threads < scan_block ? threads : scan_block;
  scan_rows<1, K><<<unsigned(shape.outer), unsigned(threads), 0, executor.stream>>>(
      ScanTotals<Functor>{totals}, shape, 1, ceil_div(shape.count, threads * K),
      static_cast<typename Functor::State*>(nullptr), false);
  return launched();
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
  int64_t threads = ceil_div(ceil_div(shape.count, V * K), 32) * 32;
  threads = threads < scan_block ? threads : scan_block;
  int64_t tiles = ceil_div(shape.count, threads * V * K), parts = 1;
  constexpr int64_t many_rows = 512, enough_blocks = 2048, few_tiles = 4;
  auto launch = [&](typename Functor::State* totals, bool forms_totals) {
    scan_rows<V, K><<<unsigned(shape.outer * parts), unsigned(threads), 0, executor.stream>>>(
        functor, shape, parts, tiles, totals, forms_totals);
    return launched();
  };
  if (tiles < 2 * few_tiles || shape.outer >= many_rows) return launch(nullptr, false);
  parts = parts_that_fit<typename Functor::State>(executor, shape.outer, ceil_div(enough_blocks, shape.outer));
  if (parts == 1) return launch(nullptr, false);
  tiles = ceil_div(tiles, parts) > few_tiles ? ceil_div(tiles, parts) : few_tiles;
  parts = ceil_div(shape.count, tiles * threads * V * K);
  auto* totals = executor.scratch<typename Functor::State>(shape.outer * parts);
  if (!totals) return small_workspace;
  if (Status status = launch(totals, true); !status.ok()) return status;
  if (Status status = scan_totals<Functor>(executor, totals, ScanShape{shape.outer, parts, 1, false, true});
      !status.ok())
    return status;
  return launch(totals, false);
}

}  // namespace internal

template <class Functor>
Status scan(Executor executor, const Functor& functor, const ScanShape& shape) {
  constexpr int size = sizeof(typename Functor::Element), V = size < 16 ? 16 / size : 1;
  if (shape.cells() == 0) return {};
  if (shape.inner > 1) return internal::scan_columns(executor, functor, shape);
  if (shape.count % V == 0) return internal::scan_rows_by<V>(executor, functor, shape);
  return internal::scan_rows_by<1>(executor, functor, shape);
}

}  // namespace baracuda
