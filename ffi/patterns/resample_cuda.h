// The resample pattern on a CUDA grid. Lanes that are neighbors write neighbors.
//
// Along one axis a thread has V neighbors of y, which have the same taps. Along two a thread goes down a strip of rows
// of y. It sums each row of x that it meets along the columns once, and keeps the sums of as many rows as there are
// taps: the next row of y needs most of them again. Where rows of y share no row of x but whole ones, as those of
// repeated elements and of sums of blocks do, a thread reads all that a few rows need before it sums.
#pragma once

#include <algorithm>

#include "resample.h"

namespace baracuda {
namespace internal {

inline constexpr int resample_block = 256;

// Of an array of x and one of y; as many lanes as fit into so many bytes of either.
template <int bytes, class T, class U>
inline constexpr int resample_lanes = bytes / int(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));

template <class Index>
struct AxisGrid {
  Divisor<Index> units, out;  // vectors in a row of y, rows
  Index threads;
};

template <int V, class Index, class Sum, class T, class U>
__global__ void __launch_bounds__(resample_block)
    resample_along(ResampleAxis<Sum> shape, AxisGrid<Index> grid, const T* __restrict__ x, U* __restrict__ y) {
  Index thread = Index(blockIdx.x) * resample_block + threadIdx.x;
  if (thread >= grid.threads) return;
  const Taps<Sum>& axis = shape.axis;
  Index row = grid.units.quotient(thread), unit = thread - row * grid.units.value;
  Index outer = grid.out.quotient(row), o = row - outer * grid.out.value;
  const T* from = x + (int64_t(outer) * axis.in + axis.first(o)) * shape.inner + int64_t(unit) * V;
  Sum sums[V];
  Vector<T, V> values = load<V>(from);
  Sum weight = axis.weight_of(o, 0);
#pragma unroll
  for (int v = 0; v < V; ++v) sums[v] = first_tap(weight, Sum(values.lane[v]));
#pragma unroll 4
  for (int k = 1; k < axis.count; ++k) {
    values = load<V>(from + k * shape.inner), weight = axis.weight_of(o, k);
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] = add_tap(sums[v], weight, Sum(values.lane[v]));
  }
  Vector<U, V> result;
#pragma unroll
  for (int v = 0; v < V; ++v) result.lane[v] = U(sums[v]);
  store<V>(y + int64_t(thread) * V, result);
}

template <class Index>
struct PlaneGrid {
  Divisor<Index> units, channels;  // vectors in a row of y, and in a column of it
  Index threads;                   // of a strip
  int strip;                       // rows
};

// The sums along the columns of row `row` of x, of a thread's V elements. `across`: the elements are V columns, each
// with taps of its own; otherwise V channels of one column.
template <int K, int V, bool across, class Sum, class T>
struct ColumnSums {
  static constexpr int tables = across ? V : 1;
  Sum weight[tables][K];
  int64_t offset[tables];
  int64_t step;  // between columns

  __device__ ColumnSums(const Taps<Sum>& columns, int64_t column, int64_t channel, int64_t inner) : step(inner) {
#pragma unroll
    for (int t = 0; t < tables; ++t) {
      offset[t] = int64_t(columns.first(column + t)) * inner + channel;
#pragma unroll
      for (int k = 0; k < K; ++k) weight[t][k] = columns.weight_of(column + t, k);
    }
  }
  __device__ void operator()(const T* row, Sum (&sums)[V]) const {
    T values[K][V];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if constexpr (across) {
#pragma unroll
        for (int v = 0; v < V; ++v) values[k][v] = row[offset[v] + k];
      } else {
        Vector<T, V> loaded = load<V>(row + offset[0] + k * step);
#pragma unroll
        for (int v = 0; v < V; ++v) values[k][v] = loaded.lane[v];
      }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const Sum(&w)[K] = weight[across ? v : 0];
      sums[v] = first_tap(w[0], Sum(values[0][v]));
#pragma unroll
      for (int k = 1; k < K; ++k) sums[v] = add_tap(sums[v], w[k], Sum(values[k][v]));
    }
  }
};

template <int K, int V, bool across, class Index, class Sum, class T, class U>
__global__ void __launch_bounds__(resample_block)
    resample_strips(ResamplePlane<Sum> shape, PlaneGrid<Index> grid, const T* __restrict__ x, U* __restrict__ y) {
  Index thread = Index(blockIdx.x) * resample_block + threadIdx.x;
  if (thread >= grid.threads) return;
  const Taps<Sum>&rows = shape.rows, &columns = shape.columns;
  Index outer = grid.units.quotient(thread), unit = thread - outer * grid.units.value;
  Index column = grid.channels.quotient(unit);
  int64_t channel = int64_t(unit - column * grid.channels.value) * V;
  ColumnSums<K, V, across, Sum, T> of_row(columns, int64_t(column) * (across ? V : 1), across ? 0 : channel,
                                          shape.inner);
  int64_t width = columns.in * shape.inner, out_width = columns.out * shape.inner;
  const T* from = x + int64_t(outer) * rows.in * width;
  U* to = y + int64_t(outer) * rows.out * out_width + int64_t(unit) * V;
  for (int64_t o = int64_t(blockIdx.y) * grid.strip; o < rows.out; o += int64_t(gridDim.y) * grid.strip) {
    int64_t end = min(o + grid.strip, rows.out), held = -K - 1;  // the first of K rows whose sums there are
    Sum sums[K][V];
    for (int64_t row = o; row < end; ++row) {
      int64_t begin = rows.first(row);
      if (held > begin || held + K < begin) held = begin - K;
      for (; held < begin; ++held) {
#pragma unroll
        for (int k = 0; k + 1 < K; ++k)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[k][v] = sums[k + 1][v];
        of_row(from + (held + K) * width, sums[K - 1]);
      }
      Sum weight = rows.weight_of(row, 0), total[V];
#pragma unroll
      for (int v = 0; v < V; ++v) total[v] = first_tap(weight, sums[0][v]);
#pragma unroll
      for (int k = 1; k < K; ++k) {
        weight = rows.weight_of(row, k);
#pragma unroll
        for (int v = 0; v < V; ++v) total[v] = add_tap(total[v], weight, sums[k][v]);
      }
      Vector<U, V> result;
#pragma unroll
      for (int v = 0; v < V; ++v) result.lane[v] = U(total[v]);
      store<V>(to + row * out_width, result);
    }
  }
}

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

// Whether 32 bits count the elements of x and of y.
inline bool resample_is_narrow(int64_t x, int64_t y) { return std::max(x, y) < narrow_reach; }

template <int K, int V, bool across, class Sum, class T, class U>
Status resample_in_strips(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  int64_t units = shape.columns.out * shape.inner / V, threads = shape.outer * units;
  // As many rows as leave some waves of threads, since each strip begins by summing K rows.
  int64_t strip = std::clamp<int64_t>(threads * shape.rows.out >> 19, K, 32);
  unsigned strips = unsigned(std::min<int64_t>(ceil_div(shape.rows.out, strip), 65535));
  dim3 blocks(unsigned(ceil_div(threads, resample_block)), strips);
  auto launch = [&](auto type) {
    using Index = decltype(type);
    PlaneGrid<Index> grid{Divisor<Index>(units), Divisor<Index>(across ? 1 : shape.inner / V), Index(threads),
                          int(strip)};
    resample_strips<K, V, across><<<blocks, resample_block, 0, executor.stream>>>(shape, grid, x, y);
    return launched();
  };
  return resample_is_narrow(threads, units) ? launch(int32_t(0)) : launch(int64_t(0));
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

// Rows of one tap that a thread has, unless there are fewer threads than some. Of more taps it has one, which is
// several rows of x.
inline constexpr int resample_rows_each = 4;
inline constexpr int64_t enough_resampled = 132 * 1024;

// Whether rows of y have rows of x of their own, or share whole ones.
template <int K, class Sum>
bool has_separate_rows(const ResamplePlane<Sum>& shape) {
  return shape.inner == 1 && (K == 1 || shape.rows.in >= K * shape.rows.out);
}

template <int V, class Sum, class T, class U>
Status resample_by(const Executor& executor, const ResampleAxis<Sum>& shape, const T* x, U* y) {
  int64_t units = shape.inner / V, threads = shape.outer * shape.axis.out * units;
  unsigned blocks = unsigned(ceil_div(threads, resample_block));
  auto launch = [&](auto type) {
    using Index = decltype(type);
    AxisGrid<Index> grid{Divisor<Index>(units), Divisor<Index>(shape.axis.out), Index(threads)};
    resample_along<V><<<blocks, resample_block, 0, executor.stream>>>(shape, grid, x, y);
    return launched();
  };
  return threads < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace internal

template <class Sum, class T, class U>
Status resample(const Executor& executor, const ResampleAxis<Sum>& shape, const T* x, U* y) {
  constexpr int V = internal::resample_lanes<16, T, U>;
  if (shape.inner % V == 0) return internal::resample_by<V>(executor, shape, x, y);
  return internal::resample_by<1>(executor, shape, x, y);
}

template <class Sum, class T, class U>
Status resample(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  constexpr int along = internal::resample_lanes<16, T, U>, across = internal::resample_lanes<8, T, U>;
  return for_taps(shape, [&](auto count) {
    constexpr int K = count.value, run = along / K > 0 ? along / K : 1;
    if (internal::has_separate_rows<K>(shape) && shape.columns.out % run == 0) {
      if constexpr (K == 1) {
        constexpr int R = internal::resample_rows_each;
        int64_t threads = shape.outer * ceil_div(shape.rows.out, R) * (shape.columns.out / run);
        if (threads >= internal::enough_resampled) return internal::resample_in_rows<1, R, run>(executor, shape, x, y);
      }
      return internal::resample_in_rows<K, 1, run>(executor, shape, x, y);
    }
    if (shape.inner == 1 && shape.columns.out % across == 0)
      return internal::resample_in_strips<count.value, across, true>(executor, shape, x, y);
    if (shape.inner % along == 0) return internal::resample_in_strips<count.value, along, false>(executor, shape, x, y);
    return internal::resample_in_strips<count.value, 1, false>(executor, shape, x, y);
  });
}

}  // namespace baracuda
