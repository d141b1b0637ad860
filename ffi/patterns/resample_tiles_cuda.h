// The resample pattern on a CUDA grid, where both axes are of twice or half the size: what a tile of y reads is known
// without a table, and a thread reads rows of x as vectors some rows before it sums them.
#pragma once

#include "resample_rows_cuda.h"

namespace baracuda {
namespace internal {

// N neighbors of an axis of twice or half the size. Their taps are in `own` neighbors of x and in `lead` on both sides,
// where none outside of x weighs anything.
template <int K, int N, bool is_twice, class Sum>
struct ScaledTaps {
  static constexpr int own = is_twice ? N / 2 : 2 * N, lead = is_twice ? K / 2 : K / 2 - 1, count = own + 2 * lead;
  int32_t first;  // of own
  bool has_before, has_after;
  Sum weight[N][K];

  __device__ ScaledTaps(const Taps<Sum>& axis, int32_t o) : first(is_twice ? o / 2 : o * 2) {
    has_before = first > 0, has_after = first + own < int32_t(axis.in);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Vector<Sum, N> loaded = load<N>(axis.weight + k * axis.out + o);
#pragma unroll
      for (int n = 0; n < N; ++n) weight[n][k] = loaded.lane[n];
    }
    if (has_before && has_after) return;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      int32_t begin = first - lead + slot(n), moved = begin - axis.in_range(begin);
      if (moved == 0) continue;
#pragma unroll
      for (int k = 0; k < K; ++k)
        weight[n][k] = 0 <= k + moved && k + moved < K ? axis.weight_of(o + n, k + moved) : Sum(0);
    }
  }
  // The first tap of n among the `count`, and whether one of them is in x.
  static constexpr __device__ int slot(int n) { return is_twice ? (n + 1) / 2 : 2 * n; }
  __device__ bool has(int i) const { return i < lead ? has_before : i < lead + own || has_after; }
};

// R rows of V neighbors of y. Four rows of x are read before they are summed.
template <int K, int R, int V, bool is_twice, class Index, class Sum, class T, class U>
__global__ void __launch_bounds__(resample_block)
    resample_scaled(ResamplePlane<Sum> shape, RowsGrid<Index> grid, const T* __restrict__ x, U* __restrict__ y) {
  Index thread = Index(blockIdx.x) * resample_block + threadIdx.x;
  if (thread >= grid.threads) return;
  Index group = grid.units.quotient(thread), unit = thread - group * grid.units.value;
  Index outer = grid.groups.quotient(group), row = (group - outer * grid.groups.value) * R, column = unit * V;
  using Rows = ScaledTaps<K, R, is_twice, Sum>;
  using Columns = ScaledTaps<K, V, is_twice, Sum>;
  constexpr int own = Columns::own, lead = Columns::lead, count = Rows::count, ahead = 4;
  static_assert(own % lead == 0 && Rows::own >= lead, "vectors are aligned, and those on a side are all in x or none");
  Columns columns(shape.columns, int32_t(column));
  Rows rows(shape.rows, int32_t(row));
  Index width = Index(shape.columns.in), out_width = Index(shape.columns.out);
  Index first = (outer * Index(shape.rows.in) + rows.first - lead) * width + columns.first;
  Words<T, own> center[count] = {};
  Words<T, lead> left[count] = {}, right[count] = {};  // zeros outside of x
  auto read = [&](int i) {
    if (!rows.has(i)) return;
    const T* from = x + (first + i * width);
    if (columns.has_before) left[i] = Words<T, lead>::read(from - lead);
    center[i] = Words<T, own>::read(from);
    if (columns.has_after) right[i] = Words<T, lead>::read(from + own);
  };
#pragma unroll
  for (int i = 0; i < ahead && i < count; ++i) read(i);
  U* to = y + (outer * Index(shape.rows.out) + row) * out_width + column;
  Sum total[R][V];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    auto value = [&](int at) {
      at -= lead;
      return Sum(at < 0 ? left[i].lane(lead + at) : at < own ? center[i].lane(at) : right[i].lane(at - own));
    };
    Sum sum[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sum[v] = columns.weight[v][0] * value(Columns::slot(v));
#pragma unroll
      for (int k = 1; k < K; ++k) sum[v] = fma(columns.weight[v][k], value(Columns::slot(v) + k), sum[v]);
    }
    if (i + ahead < count) read(i + ahead);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      int k = i - Rows::slot(r);
      if (k < 0 || k >= K) continue;
#pragma unroll
      for (int v = 0; v < V; ++v)
        total[r][v] = k == 0 ? rows.weight[r][0] * sum[v] : fma(rows.weight[r][k], sum[v], total[r][v]);
      if (k < K - 1) continue;
      Vector<U, V> result;
#pragma unroll
      for (int v = 0; v < V; ++v) result.lane[v] = U(total[r][v]);
      store<V>(to + r * out_width, result);
    }
  }
}

// Whether both axes are of twice, or of half, the size, in tiles of R rows of V elements, which 32 bits count, as they
// do weights.
template <bool is_twice, int R, int V, class Sum>
bool has_tiles(const ResamplePlane<Sum>& shape) {
  const Taps<Sum>&rows = shape.rows, &columns = shape.columns;
  return shape.are_scaled && shape.inner == 1 && (rows.out > rows.in) == is_twice && rows.out % R == 0 &&
         columns.out % V == 0 && resample_is_narrow(rows.count * rows.out, columns.count * columns.out) &&
         resample_is_narrow(shape.outer * rows.in * columns.in, shape.outer * rows.out * columns.out);
}

template <int K, int R, int V, bool is_twice, class Sum, class T, class U>
Status resample_in_tiles(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  int64_t units = shape.columns.out / V, groups = shape.rows.out / R, threads = shape.outer * groups * units;
  RowsGrid<int32_t> grid{Divisor<int32_t>(units), Divisor<int32_t>(groups), int32_t(threads)};
  unsigned blocks = unsigned(ceil_div(threads, resample_block));
  resample_scaled<K, R, V, is_twice><<<blocks, resample_block, 0, executor.stream>>>(shape, grid, x, y);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
