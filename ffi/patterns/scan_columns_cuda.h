// The scan pattern on a CUDA grid, for lines whose cells are not neighbours: a lane has V lines. The warps of a block
// take stretches of them that follow one another. Where lines are few and long, chunks of them have blocks of their
// own, and what these come to is formed first.
#pragma once

#include "scan_states_cuda.h"

namespace baracuda {
namespace internal {

// Totals of chunks are [chunks, lines]. Kernels that form them write nothing else.
template <int V, int R, class Functor>
__global__ void __launch_bounds__(scan_block, 4) scan_columns_by(Functor functor, ScanShape shape, int64_t length,
                                                                 typename Functor::State* totals, bool forms_totals) {
  using State = typename Functor::State;
  __shared__ alignas(16) unsigned char memory[2][scan_block * V * sizeof(State)];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int64_t lines = shape.outer * shape.inner, line = (int64_t(blockIdx.x) * 32 + lane) * V, chunk = blockIdx.y;
  bool in_range = line < lines;
  int64_t row = shape.inner == 1 ? line : line / shape.inner, column = line - row * shape.inner;
  int64_t begin = chunk * length, last = begin + length < shape.count ? begin + length : shape.count;
  int64_t end = in_range ? last : begin;
  State state[V];
#pragma unroll
  for (int v = 0; v < V; ++v)
    state[v] = totals && !forms_totals && in_range ? totals[chunk * lines + line + v] : Functor::none();
  using In = decltype(functor.read(shape.columns<V>(0, 0, 0)));
  auto read = [&](int64_t first, In(&in)[R]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (first + r < end) in[r] = functor.read(shape.columns<V>(row, column, first + r));
  };
  In in[R], later[R];
  read(begin + warp * R, in);
  int turn = 0;
  for (int64_t from = begin; from < last; from += warps * R, turn ^= 1) {
    int64_t first = from + warp * R;
    State mine[V];
#pragma unroll
    for (int v = 0; v < V; ++v) mine[v] = Functor::none();
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (first + r < end) {
        auto at = shape.columns<V>(row, column, first + r);
#pragma unroll
        for (int v = 0; v < V; ++v) mine[v] = Functor::join(mine[v], functor.term(at, in[r], v));
      }
    State* of_warps = reinterpret_cast<State*>(memory[turn]);
#pragma unroll
    for (int v = 0; v < V; ++v) of_warps[(warp * 32 + lane) * V + v] = mine[v];
    read(first + warps * R, later);
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v)
      for (int w = 0; w < warps; ++w) {
        if (w == warp) mine[v] = state[v];
        state[v] = Functor::join(state[v], of_warps[(w * 32 + lane) * V + v]);
      }
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (first + r < end && !forms_totals) {
        auto at = shape.columns<V>(row, column, first + r);
        State seen[V];
#pragma unroll
        for (int v = 0; v < V; ++v) {
          State after = Functor::join(mine[v], functor.term(at, in[r], v));
          seen[v] = shape.exclusive ? mine[v] : after;
          mine[v] = after;
        }
        functor.write(at, in[r], seen);
      }
#pragma unroll
    for (int r = 0; r < R; ++r) in[r] = later[r];
  }
  if (forms_totals && in_range && warp == 0)
#pragma unroll
    for (int v = 0; v < V; ++v) totals[chunk * lines + line + v] = state[v];
}

template <int V, class Functor>
Status scan_columns_of(Executor executor, const Functor& functor, const ScanShape& shape) {
  using State = typename Functor::State;
  constexpr int R = 8 / (Functor::inputs > 2 ? 4 : Functor::inputs);
  constexpr int64_t enough_blocks = 528;
  int64_t lines = shape.outer * shape.inner, blocks = ceil_div(lines, 32 * V);
  int64_t warps = ceil_div(shape.count, R);
  warps = warps < scan_block / 32 ? warps : scan_block / 32;
  int64_t steps = ceil_div(shape.count, warps * R), chunks = ceil_div(enough_blocks, blocks);
  chunks = parts_that_fit<State>(executor, lines, chunks < steps / 4 ? chunks : steps / 4);
  State* totals = nullptr;
  int64_t length = shape.count;
  if (chunks > 1) {
    length = ceil_div(steps, chunks) * warps * R, chunks = ceil_div(shape.count, length);
    totals = executor.scratch<State>(chunks * lines);
    if (!totals) return small_workspace;
    scan_columns_by<V, R><<<dim3{unsigned(blocks), unsigned(chunks), 1}, unsigned(warps * 32), 0, executor.stream>>>(
        functor, shape, length, totals, true);
    if (Status status = launched(); !status.ok()) return status;
    constexpr int R_of_totals = 4;
    int64_t warps_of_totals = ceil_div(chunks, R_of_totals);
    warps_of_totals = warps_of_totals < scan_block / 32 ? warps_of_totals : scan_block / 32;
    scan_columns_by<1, R_of_totals>
        <<<unsigned(ceil_div(lines, 32)), unsigned(warps_of_totals * 32), 0, executor.stream>>>(
            ScanTotals<Functor>{totals}, ScanShape{1, chunks, lines, false, true}, chunks, static_cast<State*>(nullptr),
            false);
    if (Status status = launched(); !status.ok()) return status;
  }
  scan_columns_by<V, R><<<dim3{unsigned(blocks), unsigned(chunks), 1}, unsigned(warps * 32), 0, executor.stream>>>(
      functor, shape, length, totals, false);
  return launched();
}

template <class Functor>
Status scan_columns(const Executor& executor, const Functor& functor, const ScanShape& shape) {
  constexpr int size = sizeof(typename Functor::Element), V = size < 4 ? 4 / size : 1;
  if (shape.inner % V == 0) return scan_columns_of<V>(executor, functor, shape);
  return scan_columns_of<1>(executor, functor, shape);
}

}  // namespace internal
}  // namespace baracuda
