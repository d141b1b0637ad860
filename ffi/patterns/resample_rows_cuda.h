// The resample pattern on a CUDA grid, where rows of y share no row of x but whole ones, as those of repeated elements
// and of sums of blocks do: a thread reads all that a few rows need before it sums.
#pragma once

#include "resample_vectors_cuda.h"

namespace baracuda {
namespace internal {

template <class Index>
struct RowsGrid {
  Divisor<Index> units, groups;  // vectors in a row of y, and groups of R rows
  Index threads;
};

// The taps of V neighbors along a row of y. In a run they are neighbors in x too, and aligned: K of each, or one of
// two.
template <int K, int V, class Sum>
struct ColumnTaps {
  static constexpr int run = K > 1 ? K * V : V / 2;
  int32_t first[V];
  Sum weight[K][V];

  __device__ ColumnTaps(const Taps<Sum>& columns, int column) {
    Vector<int32_t, V> begin = load<V>(columns.begin + column);
#pragma unroll
    for (int v = 0; v < V; ++v) first[v] = columns.in_range(begin.lane[v]);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Vector<Sum, V> loaded = load<V>(columns.weight + k * columns.out + column);
#pragma unroll
      for (int v = 0; v < V; ++v) weight[k][v] = loaded.lane[v];
    }
  }
  __device__ bool is_run(int64_t width) const {
    bool found = run > 0 && width % (run > 0 ? run : 1) == 0 && first[0] % (run > 0 ? run : 1) == 0;
#pragma unroll
    for (int v = 1; v < V; ++v) found = found && first[v] == first[0] + in_run(v, 0);
    return found;
  }
  static constexpr __device__ int in_run(int v, int k) { return K > 1 ? v * K + k : v / 2; }
};

// R rows of V neighbors of y. Rows whose one tap is that of the row above are its copies.
template <int K, int R, int V, class Index, class Sum, class T, class U>
__global__ void __launch_bounds__(resample_block)
    resample_rows(ResamplePlane<Sum> shape, RowsGrid<Index> grid, const T* __restrict__ x, U* __restrict__ y) {
  Index thread = Index(blockIdx.x) * resample_block + threadIdx.x;
  if (thread >= grid.threads) return;
  const Taps<Sum>&rows = shape.rows, &columns = shape.columns;
  Index group = grid.units.quotient(thread), unit = thread - group * grid.units.value;
  Index outer = grid.groups.quotient(group), row = (group - outer * grid.groups.value) * R, column = unit * V;
  Index width = Index(columns.in), out_width = Index(columns.out), last = Index(rows.out) - 1;
  using Columns = ColumnTaps<K, V, Sum>;
  Columns taps(columns, int(column));
  int32_t begin[R];
  Sum weight[R][K];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    Index o = row + r < last ? row + r : last;
    begin[r] = rows.first(o);
#pragma unroll
    for (int j = 0; j < K; ++j) weight[r][j] = rows.weight_of(o, j);
  }
  auto is_copy = [&](int r) {
    return K == 1 && r > 0 && begin[r] == begin[r > 0 ? r - 1 : 0] && weight[r][0] == weight[r > 0 ? r - 1 : 0][0];
  };
  const T* plane = x + outer * Index(rows.in) * width;
  U* to = y + (outer * Index(rows.out) + row) * out_width + column;
  auto resampled = [&](auto run) {
    constexpr bool is_run = decltype(run)::value;
    constexpr int count = is_run ? Columns::run : K * V;
    Vector<T, count> values[R][K];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (is_copy(r)) continue;
#pragma unroll
      for (int j = 0; j < K; ++j) {
        const T* from = plane + (begin[r] + j) * width;
        if constexpr (is_run) {
          values[r][j] = load<count>(from + taps.first[0]);
        } else {
#pragma unroll
          for (int k = 0; k < count; ++k) values[r][j].lane[k] = from[taps.first[k / K] + k % K];
        }
      }
    }
    Vector<U, V> result;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (row + r > last) break;
      if (!is_copy(r)) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          Sum total;
#pragma unroll
          for (int j = 0; j < K; ++j) {
            auto value = [&](int k) { return Sum(values[r][j].lane[is_run ? Columns::in_run(v, k) : v * K + k]); };
            Sum sum = first_tap(taps.weight[0][v], value(0));
#pragma unroll
            for (int k = 1; k < K; ++k) sum = add_tap(sum, taps.weight[k][v], value(k));
            total = j == 0 ? first_tap(weight[r][0], sum) : add_tap(total, weight[r][j], sum);
          }
          result.lane[v] = U(total);
        }
      }
      store<V>(to + r * out_width, result);
    }
  };
  if constexpr (Columns::run > 0)
    if (taps.is_run(columns.in)) return resampled(std::true_type());
  resampled(std::false_type());
}

// Rows of one tap that a thread has, unless there are fewer threads than some. Of more taps it has one, which is
// several rows of x.
inline constexpr int resample_rows_each = 4;
inline constexpr int64_t enough_resampled = 132 * 1024;

// Whether rows of y have rows of x of their own, or share whole ones.
template <int K, class Sum>
bool has_separate_rows(const ResamplePlane<Sum>& shape) {
  return shape.inner == 1 && (K == 1 || shape.rows.in >= K * shape.rows.out);
}

template <int K, int R, int V, class Sum, class T, class U>
Status resample_in_rows(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  int64_t units = shape.columns.out / V, groups = ceil_div(shape.rows.out, R), threads = shape.outer * groups * units;
  int64_t elements = shape.outer * std::max(shape.rows.in * shape.columns.in, groups * R * shape.columns.out);
  auto launch = [&](auto type) {
    using Index = decltype(type);
    RowsGrid<Index> grid{Divisor<Index>(units), Divisor<Index>(groups), Index(threads)};
    unsigned blocks = unsigned(ceil_div(threads, resample_block));
    resample_rows<K, R, V><<<blocks, resample_block, 0, executor.stream>>>(shape, grid, x, y);
    return launched();
  };
  return resample_is_narrow(elements, threads) ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace internal
}  // namespace baracuda
