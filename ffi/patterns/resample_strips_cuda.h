// The resample pattern on a CUDA grid, along two axes of any tables: a thread goes down a strip of rows of y. It sums
// each row of x that it meets along the columns once, and keeps the sums of as many rows as there are taps: the next
// row of y needs most of them again.
#pragma once

#include "resample_vectors_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int longest_strip = 16;  // rows, of which a lane of a warp has one

template <class Index>
struct StripGrid {
  Divisor<Index> units, channels, strips;  // vectors in a row of y, and in a column of it; strips of a column
  Index threads;                           // of a strip
  int rows;                                // of a strip
};

// The rows of a strip, which a block's threads share: the rows of x in the order in which they are needed, each once
// where rows of y have it in common, how many of them a row of y and those before it need, and what they weigh.
template <int K, class Index, class Sum>
struct StripRows {
  Index from[longest_strip * K + 1];  // and the last one again, which is read in advance
  int32_t until[longest_strip];
  Sum weight[longest_strip][K];

  // By a warp, of which lanes after the last row have that row.
  __device__ void find(const Taps<Sum>& rows, int64_t first, int count, Index width) {
    int lane = threadIdx.x;
    int64_t o = first + (lane < count ? lane : count - 1);
    int32_t begin = rows.first(o), above = __shfl_up_sync(~0u, begin, 1), fresh = K;
    if (lane > 0 && begin >= above && begin - above < K) fresh = begin - above;
    int32_t sum = fresh;
#pragma unroll
    for (int step = 1; step < longest_strip; step *= 2) {
      int32_t before = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += before;
    }
    if (lane >= longest_strip) return;
    until[lane] = sum;
    for (int k = K - fresh; k < K; ++k) from[sum - K + k] = Index(begin + k) * width;
    if (lane == longest_strip - 1) from[sum] = Index(begin + K - 1) * width;
#pragma unroll
    for (int k = 0; k < K; ++k) weight[lane][k] = rows.weight_of(o, k);
  }
};

// V neighboring columns, each with taps of its own.
template <int K_, int V_, class Index, class Sum, class T>
struct OwnColumns {
  static constexpr int K = K_, V = V_;
  struct Read {
    T value[V][K];
  };
  Index first[V];
  Sum weight[V][K];

  __device__ OwnColumns(const Taps<Sum>& columns, Index plane, Index column) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      first[v] = plane + columns.first(column + v);
#pragma unroll
      for (int k = 0; k < K; ++k) weight[v][k] = columns.weight_of(column + v, k);
    }
  }
  __device__ Read read(const T* x, Index row) const {
    Read found;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const T* from = x + (first[v] + row);
#pragma unroll
      for (int k = 0; k < K; ++k) found.value[v][k] = from[k];
    }
    return found;
  }
  __device__ Sum sum(const Read& read, int v) const {
    Sum sum = first_tap(weight[v][0], Sum(read.value[v][0]));
#pragma unroll
    for (int k = 1; k < K; ++k) sum = add_tap(sum, weight[v][k], Sum(read.value[v][k]));
    return sum;
  }
};

// V neighboring channels of one column.
template <int K_, int V_, class Index, class Sum, class T>
struct OneColumn {
  static constexpr int K = K_, V = V_;
  struct Read {
    Words<T, V> value[K];
  };
  Index first, step;  // step between columns
  Sum weight[K];

  __device__ OneColumn(const Taps<Sum>& columns, Index plane, Index column, Index channel, Index inner)
      : first(plane + Index(columns.first(column)) * inner + channel), step(inner) {
#pragma unroll
    for (int k = 0; k < K; ++k) weight[k] = columns.weight_of(column, k);
  }
  __device__ Read read(const T* x, Index row) const {
    Read found;
#pragma unroll
    for (int k = 0; k < K; ++k) found.value[k] = Words<T, V>::read(x + (first + row + k * step));
    return found;
  }
  __device__ Sum sum(const Read& read, int v) const {
    Sum sum = first_tap(weight[0], Sum(read.value[0].lane(v)));
#pragma unroll
    for (int k = 1; k < K; ++k) sum = add_tap(sum, weight[k], Sum(read.value[k].lane(v)));
    return sum;
  }
};

// Down a strip: the next row of x is read before the sums of the present one are needed.
template <class Columns, class Index, class Sum, class T, class U>
__device__ void resample_strip(const StripRows<Columns::K, Index, Sum>& rows, int count, const Columns& columns,
                               const T* x, U* to, Index out_width) {
  constexpr int K = Columns::K, V = Columns::V;
  auto read = columns.read(x, rows.from[0]);
  Sum sums[K][V] = {};
  int done = 0;
#pragma unroll 1
  for (int r = 0; r < count; ++r, to += out_width) {
#pragma unroll 1
    for (int until = rows.until[r]; done < until; ++done) {
#pragma unroll
      for (int v = 0; v < V; ++v) {
#pragma unroll
        for (int k = 0; k + 1 < K; ++k) sums[k][v] = sums[k + 1][v];
        sums[K - 1][v] = columns.sum(read, v);
      }
      read = columns.read(x, rows.from[done + 1]);
    }
    Sum total[V];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Sum weight = rows.weight[r][k];
#pragma unroll
      for (int v = 0; v < V; ++v)
        total[v] = k == 0 ? first_tap(weight, sums[0][v]) : add_tap(total[v], weight, sums[k][v]);
    }
    Vector<U, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.lane[v] = U(total[v]);
    store<V>(to, result);
  }
}

template <int K, int V, bool across, class Index, class Sum, class T, class U>
__global__ void __launch_bounds__(resample_block)
    resample_strips(ResamplePlane<Sum> shape, StripGrid<Index> grid, const T* __restrict__ x, U* __restrict__ y) {
  __shared__ StripRows<K, Index, Sum> rows;
  Index block = grid.strips.quotient(blockIdx.x);
  int64_t first = int64_t(Index(blockIdx.x) - block * grid.strips.value) * grid.rows;
  int count = int(min(int64_t(grid.rows), shape.rows.out - first));
  Index inner = Index(shape.inner), width = Index(shape.columns.in) * inner;
  Index out_width = Index(shape.columns.out) * inner;
  if (threadIdx.x < 32) rows.find(shape.rows, first, count, width);
  Index thread = block * resample_block + threadIdx.x;
  bool is_beyond = thread >= grid.threads;
  if (is_beyond) thread = grid.threads - 1;
  Index outer = grid.units.quotient(thread), unit = thread - outer * grid.units.value;
  Index plane = outer * (Index(shape.rows.in) * width);
  U* to = y + (outer * Index(shape.rows.out) + Index(first)) * out_width + unit * V;
  auto resampled = [&](const auto& columns) {
    __syncthreads();
    if (!is_beyond) resample_strip(rows, count, columns, x, to, out_width);
  };
  if constexpr (across) {
    resampled(OwnColumns<K, V, Index, Sum, T>(shape.columns, plane, unit * V));
  } else {
    Index column = grid.channels.quotient(unit), channel = (unit - column * grid.channels.value) * V;
    resampled(OneColumn<K, V, Index, Sum, T>(shape.columns, plane, column, channel, inner));
  }
}

template <int K, int V, bool across, class Sum, class T, class U>
Status resample_in_strips(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  const Taps<Sum>&rows = shape.rows, &columns = shape.columns;
  int64_t units = columns.out * shape.inner / V, threads = shape.outer * units;
  int64_t elements = shape.outer * shape.inner * std::max(rows.in * columns.in, rows.out * columns.out);
  // As many rows as leave some waves of threads, since each strip begins by summing K rows.
  int64_t most = std::clamp<int64_t>(threads * rows.out >> 18, K < 8 ? K : longest_strip, longest_strip);
  int64_t strips = ceil_div(rows.out, most), strip = ceil_div(rows.out, strips),
          blocks = ceil_div(threads, resample_block) * strips;
  auto launch = [&](auto type) {
    using Index = decltype(type);
    StripGrid<Index> grid{Divisor<Index>(units), Divisor<Index>(across ? 1 : shape.inner / V), Divisor<Index>(strips),
                          Index(threads), int(strip)};
    resample_strips<K, V, across><<<unsigned(blocks), resample_block, 0, executor.stream>>>(shape, grid, x, y);
    return launched();
  };
  return resample_is_narrow(elements, blocks * resample_block) ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace internal
}  // namespace baracuda
