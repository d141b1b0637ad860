// The scan pattern on a CUDA grid, for slices whose elements are not neighbors: a lane has V slices. The warps of a
// block take ranges of them that follow one another; what these come to is joined by a thread for each slice. Where
// slices are few and long, chunks of them have blocks of their own, and what these come to is formed first.
#pragma once

#include "scan_block_cuda.h"

namespace baracuda {
namespace internal {

// Of the parts that slices are to be cut into, as many as the workspace has room for the totals of; at least one.
template <class State>
int64_t parts_that_fit(const Executor& executor, int64_t slices, int64_t parts) {
  int64_t room = int64_t(executor.workspace_bytes / 256 * 256 / (size_t(slices) * sizeof(State)));
  parts = parts < room ? parts : room;
  return parts > 1 ? parts : 1;
}

// Puts what comes before each part of a slice in the place of its total.
template <class Functor>
struct ScanTotals {
  using State = typename Functor::State;
  State* totals;

  BARACUDA_HD static State none() { return Functor::none(); }
  template <class At>
  BARACUDA_HD State read(const At& at) const {
    return totals[at.element];
  }
  template <class At>
  BARACUDA_HD State term(const At&, const State& total, int) const {
    return total;
  }
  BARACUDA_HD static State join(const State& a, const State& b) { return Functor::join(a, b); }
  template <class At>
  BARACUDA_HD void write(const At& at, const State&, const State (&s)[1]) const {
    totals[at.element] = s[0];
  }
};

inline constexpr int64_t least_column_blocks = 192, most_column_blocks = 264;

// Totals of chunks are [chunks, slices]. Kernels that form them write nothing else.
template <int V, int R, class Functor>
__global__ void __launch_bounds__(scan_block, 2) scan_columns_by(Functor functor, ScanShape shape, int64_t length,
                                                                 typename Functor::State* totals, bool forms_totals) {
  using State = typename Functor::State;
  constexpr int width = 32 * V;
  __shared__ alignas(16) unsigned char memory[(scan_block / 32 + 1) * width * sizeof(State)];
  State* of_warps = reinterpret_cast<State*>(memory);
  State* before = of_warps + blockDim.x * V;  // the warps of this step
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int64_t slices = shape.outer * shape.inner, first_slice = int64_t(blockIdx.x) * width, slice = first_slice + lane * V;
  int64_t row = shape.inner == 1 ? slice : slice / shape.inner, column = slice - row * shape.inner, chunk = blockIdx.y;
  int64_t begin = chunk * length, last = begin + length < shape.count ? begin + length : shape.count;
  int64_t end = slice < slices ? last : begin;
  int64_t of_chunk = chunk * slices + first_slice;
  int mine = int(slices - first_slice < width ? slices - first_slice : width);
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    before[i] = totals && !forms_totals && i < mine ? totals[of_chunk + i] : Functor::none();
  using In = decltype(functor.read(shape.columns<V>(0, 0, 0)));
  auto read = [&](int64_t first, In(&in)[R]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (first + r < end) in[r] = functor.read(shape.columns<V>(row, column, first + r));
  };
  In in[R], later[R];
  read(begin + warp * R, in);
  for (int64_t from = begin; from < last; from += warps * R) {
    int64_t first = from + warp * R;
    State state[V];
#pragma unroll
    for (int v = 0; v < V; ++v) state[v] = Functor::none();
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (first + r < end) {
        auto at = shape.columns<V>(row, column, first + r);
#pragma unroll
        for (int v = 0; v < V; ++v) state[v] = Functor::join(state[v], functor.term(at, in[r], v));
      }
#pragma unroll
    for (int v = 0; v < V; ++v) of_warps[threadIdx.x * V + v] = state[v];
    read(first + warps * R, later);
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
      State sum = before[i];
      for (int w = 0; w < warps; ++w) {
        State after = Functor::join(sum, of_warps[w * width + i]);
        of_warps[w * width + i] = sum;
        sum = after;
      }
      before[i] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) state[v] = of_warps[threadIdx.x * V + v];
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (first + r < end && !forms_totals) {
        auto at = shape.columns<V>(row, column, first + r);
        State seen[V];
#pragma unroll
        for (int v = 0; v < V; ++v) {
          State after = Functor::join(state[v], functor.term(at, in[r], v));
          seen[v] = shape.exclusive ? state[v] : after;
          state[v] = after;
        }
        functor.write(at, in[r], seen);
      }
#pragma unroll
    for (int r = 0; r < R; ++r) in[r] = later[r];
  }
  if (forms_totals)
    for (int i = threadIdx.x; i < mine; i += blockDim.x) totals[of_chunk + i] = before[i];
}

template <int V, class Functor>
Status scan_columns_of(Executor executor, const Functor& functor, const ScanShape& shape) {
  using State = typename Functor::State;
  constexpr int R = 8 / (Functor::inputs > 2 ? 4 : Functor::inputs);
  int64_t slices = shape.outer * shape.inner, blocks = ceil_div(slices, 32 * V);
  int64_t warps = ceil_div(shape.count, R);
  warps = warps < scan_block / 32 ? warps : scan_block / 32;
  int64_t steps = ceil_div(shape.count, warps * R),
          chunks = blocks < least_column_blocks ? ceil_div(most_column_blocks, blocks) : 1;
  chunks = parts_that_fit<State>(executor, slices, chunks < steps / 4 ? chunks : steps / 4);
  State* totals = nullptr;
  int64_t length = shape.count;
  if (chunks > 1) {
    length = ceil_div(steps, chunks) * warps * R, chunks = ceil_div(shape.count, length);
    totals = executor.scratch<State>(chunks * slices);
    if (!totals) return small_workspace;
    scan_columns_by<V, R><<<dim3{unsigned(blocks), unsigned(chunks), 1}, unsigned(warps * 32), 0, executor.stream>>>(
        functor, shape, length, totals, true);
    if (Status status = launched(); !status.ok()) return status;
    constexpr int R_of_totals = 4;
    int64_t warps_of_totals = ceil_div(chunks, R_of_totals);
    warps_of_totals = warps_of_totals < scan_block / 32 ? warps_of_totals : scan_block / 32;
    scan_columns_by<1, R_of_totals>
        <<<unsigned(ceil_div(slices, 32)), unsigned(warps_of_totals * 32), 0, executor.stream>>>(
            ScanTotals<Functor>{totals}, ScanShape{1, chunks, slices, false, true}, chunks,
            static_cast<State*>(nullptr), false);
    if (Status status = launched(); !status.ok()) return status;
  }
  scan_columns_by<V, R><<<dim3{unsigned(blocks), unsigned(chunks), 1}, unsigned(warps * 32), 0, executor.stream>>>(
      functor, shape, length, totals, false);
  return launched();
}

template <class Functor>
Status scan_columns(const Executor& executor, const Functor& functor, const ScanShape& shape) {
  constexpr int size = sizeof(typename Functor::Element), V = size < 4 ? 4 : size < 16 ? 16 / size : 1;
  // Wide ones, unless they would be too few for all multiprocessors, and narrow ones would not.
  int64_t slices = shape.outer * shape.inner;
  bool few = slices < least_column_blocks * 32 * V && slices >= least_column_blocks * 32;
  if (shape.inner % V == 0 && !few) return scan_columns_of<V>(executor, functor, shape);
  return scan_columns_of<1>(executor, functor, shape);
}

}  // namespace internal
}  // namespace baracuda
