// The resample pattern on a CUDA grid. Lanes that are neighbors write neighbors.
//
// Along one axis a thread has V neighbors of y, which have the same taps. Along two a thread goes down a strip of rows
// of y. It sums each row of x that it meets along the columns once, and keeps the sums of as many rows as there are
// taps: the next row of y needs most of them again. Where rows of y share no row of x but whole ones, as those of
// repeated elements and of sums of blocks do, a thread reads all that a few rows need before it sums. So it does where
// both axes are of twice or half the size: what it reads is known without a table. Of four taps of twice the size and
// of eight of half the size, which neighbors have in common, it goes down a strip too, and lanes of a warp give what
// they read or have summed to each other.
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

// V neighbors as words: nvcc moves 16-bit values that wait in registers one by one.
template <class T, int V>
struct Words {
  static constexpr int bytes = V * int(sizeof(T));
  using Word = std::conditional_t<(bytes < 4), uint16_t, uint32_t>;
  Vector<Word, bytes / int(sizeof(Word))> words;

  static __device__ Words read(const T* from) {
    return {load<bytes / int(sizeof(Word))>(reinterpret_cast<const Word*>(from))};
  }
  __device__ T lane(int v) const {
    T lanes[V];
    memcpy(lanes, &words, bytes);
    return lanes[v];
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

// The weight of tap k of element o of an axis, whose taps begin at `begin`. Those outside of x weigh nothing.
template <class Sum>
__device__ Sum scaled_weight(const Taps<Sum>& axis, int o, int k, int begin) {
  k += begin - axis.in_range(begin);
  return unsigned(k) < unsigned(axis.count) && unsigned(o) < unsigned(axis.out) ? axis.weight[k * int(axis.out) + o]
                                                                                : Sum(0);
}

// Weights of V neighbors from element o on, some of whose taps are outside of x.
template <int K, int V, class Sum, class Begin>
__device__ void move_taps(const Taps<Sum>& axis, int o, const Begin& begin, Sum (&weight)[V][K]) {
  int out = int(axis.out);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    int moved = begin(o + v) - axis.in_range(begin(o + v));
    if (moved == 0) continue;
    const Sum* from = axis.weight + (moved * out + o + v);
#pragma unroll
    for (int k = 0; k < K; ++k) weight[v][k] = unsigned(k + moved) < unsigned(K) ? from[k * out] : Sum(0);
  }
}

// V neighbors along a row of y of half the size, of K taps, which are in `own` neighbors of x and in `lead` on both
// sides.
template <int K, int V, class Sum>
struct HalfColumns {
  static constexpr int own = 2 * V, lead = K / 2 - 1;
  int first;                        // of own
  int64_t mask_before, mask_after;  // all bits where there are neighbors on a side
  Sum weight[V][K];

  __device__ HalfColumns(const Taps<Sum>& axis, int column) : first(2 * column) {
    bool has_before = first > 0, has_after = first + own < int(axis.in);
    mask_before = -int64_t(has_before), mask_after = -int64_t(has_after);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Vector<Sum, V> loaded = load<V>(axis.weight + k * axis.out + column);
#pragma unroll
      for (int v = 0; v < V; ++v) weight[v][k] = loaded.lane[v];
    }
    if (!has_before || !has_after) move_taps<K, V>(axis, column, begin, weight);
  }
  // The taps of element o begin here. Those outside of x weigh nothing.
  static __device__ int begin(int o) { return 2 * o - lead; }
  // By all lanes of a warp, each of which has the sums of its own columns.
  __device__ void sum(const Sum (&down)[own], Sum (&total)[V]) const {
    // By masks: of conditions nvcc makes branches, each with its own shuffles.
    using Bits = std::conditional_t<sizeof(Sum) == 8, uint64_t, uint32_t>;
    Sum values[lead + own + lead];
#pragma unroll
    for (int i = 0; i < own; ++i) values[lead + i] = down[i];
#pragma unroll
    for (int i = 0; i < lead; ++i) {
      Sum before = __shfl_up_sync(~0u, down[own - lead + i], 1), after = __shfl_down_sync(~0u, down[i], 1);
      values[i] = bit_cast<Sum>(Bits(bit_cast<Bits>(before) & Bits(mask_before)));
      values[lead + own + i] = bit_cast<Sum>(Bits(bit_cast<Bits>(after) & Bits(mask_after)));
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      total[v] = weight[v][0] * values[2 * v];
#pragma unroll
      for (int k = 1; k < K; ++k) total[v] = fma(weight[v][k], values[2 * v + k], total[v]);
    }
  }
};

// Down a strip of rows of y a lane reads its own columns of each row of x once, some rows in advance. The first and the
// last lane of a warp only read for the lanes next to them.
inline constexpr int scaled_block = 128, scaled_lanes = 30, scaled_each = scaled_block / 32 * scaled_lanes;

template <int ahead, int count>
inline constexpr int scaled_together = ahead > count ? ahead : count;  // steps that are unrolled

struct ScaledGrid {
  Divisor<int32_t> units, strips;  // vectors in a row of y, strips of a column of it
  int32_t threads;                 // of a strip
  int steps;                       // of a strip
};

// Which vector of y a lane has.
struct ScaledLane {
  int outer, unit, first;  // the first step of the strip
  bool is_written;

  __device__ explicit ScaledLane(const ScaledGrid& grid) {
    int block = grid.strips.quotient(blockIdx.x), lane = threadIdx.x % 32;
    int thread = block * scaled_each + int(threadIdx.x / 32) * scaled_lanes + lane - 1;
    first = (int(blockIdx.x) - block * grid.strips.value) * grid.steps;
    is_written = 0 < lane && lane <= scaled_lanes && thread < grid.threads;
    thread = max(0, min(thread, grid.threads - 1));
    outer = grid.units.quotient(thread), unit = thread - outer * grid.units.value;
  }
};

// The rows of x that a lane reads, one after the other: zeros outside of x.
template <class Read, class T>
struct ScaledRows {
  const T* from;
  int row, end, width;

  __device__ Read next() {
    Read found = unsigned(row) < unsigned(end) ? Read::read(from + row * width) : Read{};
    ++row;
    return found;
  }
};

// A step is a row of y, the last two of whose K rows of x are read then, and added to the K / 2 rows of y that they are
// taps of. Sums of columns go to the lanes next to it.
inline constexpr int longest_half = 56, half_ahead = 4;

template <int K, int V, class Sum, class T, class U>
__global__ void __launch_bounds__(scaled_block, sizeof(Sum) == 8 ? 2 : 4)
    resample_half(ResamplePlane<Sum> shape, ScaledGrid grid, const T* __restrict__ x, U* __restrict__ y) {
  using Columns = HalfColumns<K, V, Sum>;
  using Read = Words<T, Columns::own>;
  constexpr int own = Columns::own, open = K / 2, ahead = half_ahead, together = scaled_together<ahead, open>;
  static_assert(together % ahead == 0 && together % open == 0);
  __shared__ Vector<Sum, K> weights[longest_half + open - 1];
  ScaledLane lane(grid);
  int out = int(shape.rows.out), height = int(shape.rows.in), width = int(shape.columns.in);
  int top = lane.first, steps = min(grid.steps, out - top) + open - 1, column = lane.unit * V;
#pragma unroll 1
  for (int i = threadIdx.x; i < steps * K; i += scaled_block) {
    int o = top - open + 1 + i / K + i % K / 2;
    weights[i / K].lane[i % K] = scaled_weight(shape.rows, o, K - 2 - i % K / 2 * 2 + i % 2, Columns::begin(o));
  }
  Columns columns(shape.columns, column);
  int row = Columns::begin(top);
  ScaledRows<Read, T> rows{x + (lane.outer * height * width + columns.first), row, min(height, row + 2 * steps), width};
  U* to = y + (lane.outer * out + top) * int(shape.columns.out) + column;
  Read next[ahead][2];
#pragma unroll
  for (int i = 0; i < ahead; ++i) next[i][0] = rows.next(), next[i][1] = rows.next();
  __syncthreads();
  Sum sums[open][own] = {};
#pragma unroll 1
  for (int step = 0; step < steps; step += together) {
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (step + i >= steps) break;
      Read &upper = next[i % ahead][0], &lower = next[i % ahead][1];
      Vector<Sum, K> weight = weights[step + i];
#pragma unroll
      for (int n = 0; n < own; ++n) {
        Sum first = Sum(upper.lane(n)), second = Sum(lower.lane(n));
#pragma unroll
        for (int a = 0; a < open; ++a) {
          Sum& sum = sums[(i + a) % open][n];
          sum = a == open - 1 ? weight.lane[2 * a] * first : fma(weight.lane[2 * a], first, sum);
          sum = fma(weight.lane[2 * a + 1], second, sum);
        }
      }
      upper = rows.next(), lower = rows.next();
      if (step + i < open - 1) continue;
      Sum total[V];
      columns.sum(sums[i % open], total);
      Vector<U, V> result;
#pragma unroll
      for (int v = 0; v < V; ++v) result.lane[v] = U(total[v]);
      if (lane.is_written) store<V>(to, result);
      to += int(shape.columns.out);
    }
  }
}

// V neighbors along a row of y of twice the size, of K taps, which are in `own` neighbors of x and in `lead` on both
// sides. Of these a lane has the words that the lanes next to it read.
template <int K, int V, class Sum, class T>
struct TwiceColumns {
  static constexpr int own = V / 2, lead = K / 2, words = own * int(sizeof(T)) / 4;
  static constexpr int leading = (lead * int(sizeof(T)) + 3) / 4, lanes = leading * 4 / int(sizeof(T));
  int first;
  uint32_t mask_before, mask_after;
  Sum weight[V][K];

  __device__ TwiceColumns(const Taps<Sum>& axis, int column) : first(column / 2) {
    bool has_before = first > 0, has_after = first + own < int(axis.in);
    mask_before = -uint32_t(has_before), mask_after = -uint32_t(has_after);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Vector<Sum, V> loaded = load<V>(axis.weight + k * axis.out + column);
#pragma unroll
      for (int v = 0; v < V; ++v) weight[v][k] = loaded.lane[v];
    }
    if (!has_before || !has_after) move_taps<K, V>(axis, column, begin, weight);
  }
  static __device__ int begin(int o) { return (o + 1) / 2 - lead; }
  __device__ void sum(const Words<T, own>& read, Sum (&total)[V]) const {
    Words<T, lanes> before, after;
#pragma unroll
    for (int i = 0; i < leading; ++i) {
      before.words.lane[i] = __shfl_up_sync(~0u, read.words.lane[words - leading + i], 1) & mask_before;
      after.words.lane[i] = __shfl_down_sync(~0u, read.words.lane[i], 1) & mask_after;
    }
    Sum values[lead + own + lead];
#pragma unroll
    for (int i = 0; i < own; ++i) values[lead + i] = Sum(read.lane(i));
#pragma unroll
    for (int i = 0; i < lead; ++i)
      values[i] = Sum(before.lane(lanes - lead + i)), values[lead + own + i] = Sum(after.lane(i));
#pragma unroll
    for (int v = 0; v < V; ++v) {
      total[v] = weight[v][0] * values[(v + 1) / 2];
#pragma unroll
      for (int k = 1; k < K; ++k) total[v] = fma(weight[v][k], values[(v + 1) / 2 + k], total[v]);
    }
  }
};

// A step is a pair of rows of y, 2 j - 1 and 2 j, which have the same K rows of x, the last of which is read then.
inline constexpr int longest_twice = 14, twice_ahead = 4;

template <int K, int V, class Sum, class T, class U>
__global__ void __launch_bounds__(scaled_block, sizeof(Sum) == 8 ? 2 : 5)
    resample_twice(ResamplePlane<Sum> shape, ScaledGrid grid, const T* __restrict__ x, U* __restrict__ y) {
  using Columns = TwiceColumns<K, V, Sum, T>;
  using Read = Words<T, Columns::own>;
  constexpr int ahead = twice_ahead, together = scaled_together<ahead, K>;
  static_assert(together % ahead == 0 && together % K == 0);
  __shared__ Vector<Sum, K> weights[longest_twice][2];
  ScaledLane lane(grid);
  int out = int(shape.rows.out), height = int(shape.rows.in), width = int(shape.columns.in);
  int top = lane.first, pairs = min(grid.steps, height + 1 - top), steps = pairs + K - 1, column = lane.unit * V;
#pragma unroll 1
  for (int i = threadIdx.x; i < pairs * 2 * K; i += scaled_block) {
    int o = 2 * top - 1 + i / K;
    weights[i / K / 2][i / K % 2].lane[i % K] = scaled_weight(shape.rows, o, i % K, Columns::begin(o));
  }
  Columns columns(shape.columns, column);
  int row = top - K / 2, out_width = int(shape.columns.out), o = 2 * top - 1;
  ScaledRows<Read, T> rows{x + (lane.outer * height * width + columns.first), row, min(height, row + steps), width};
  U* to = y + (int64_t(lane.outer) * out + o) * out_width + column;
  Read next[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) next[i] = rows.next();
  __syncthreads();
  Sum sums[K][V];
#pragma unroll 1
  for (int step = 0; step < steps; step += together) {
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (step + i >= steps) break;
      columns.sum(next[i % ahead], sums[i % K]);
      next[i % ahead] = rows.next();
      if (step + i < K - 1) continue;
#pragma unroll
      for (int r = 0; r < 2; ++r, ++o, to += out_width) {
        Vector<Sum, K> weight = weights[step + i - (K - 1)][r];
        Vector<U, V> result;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          Sum total = weight.lane[0] * sums[(i + 1) % K][v];
#pragma unroll
          for (int k = 1; k < K; ++k) total = fma(weight.lane[k], sums[(i + 1 + k) % K][v], total);
          result.lane[v] = U(total);
        }
        if (lane.is_written && unsigned(o) < unsigned(out)) store<V>(to, result);
      }
    }
  }
}

// Whether 32 bits count the elements of x and of y.
inline bool resample_is_narrow(int64_t x, int64_t y) { return std::max(x, y) < narrow_reach; }

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

template <int K, int R, int V, bool is_twice, class Sum, class T, class U>
Status resample_in_tiles(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  int64_t units = shape.columns.out / V, groups = shape.rows.out / R, threads = shape.outer * groups * units;
  RowsGrid<int32_t> grid{Divisor<int32_t>(units), Divisor<int32_t>(groups), int32_t(threads)};
  unsigned blocks = unsigned(ceil_div(threads, resample_block));
  resample_scaled<K, R, V, is_twice><<<blocks, resample_block, 0, executor.stream>>>(shape, grid, x, y);
  return launched();
}

// In strips of at least `least` and at most `most` of the steps that there are.
template <int V, class Kernel, class Sum, class T, class U>
Status resample_in_steps(const Executor& executor, Kernel kernel, const ResamplePlane<Sum>& shape, int64_t steps,
                         int64_t least, int64_t most, const T* x, U* y) {
  int64_t units = shape.columns.out / V, threads = shape.outer * units;
  int64_t strips = ceil_div(steps, std::clamp(threads * steps >> 15, least, most)), strip = ceil_div(steps, strips);
  ScaledGrid grid{Divisor<int32_t>(units), Divisor<int32_t>(strips), int32_t(threads), int(strip)};
  unsigned blocks = unsigned(ceil_div(threads, scaled_each) * strips);
  kernel<<<blocks, scaled_block, 0, executor.stream>>>(shape, grid, x, y);
  return launched();
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

// Whether both axes are of twice, or of half, the size, in tiles of R rows of V elements, which 32 bits count, as they
// do weights.
template <bool is_twice, int R, int V, class Sum>
bool has_tiles(const ResamplePlane<Sum>& shape) {
  const Taps<Sum>&rows = shape.rows, &columns = shape.columns;
  return shape.are_scaled && shape.inner == 1 && (rows.out > rows.in) == is_twice && rows.out % R == 0 &&
         columns.out % V == 0 && resample_is_narrow(rows.count * rows.out, columns.count * columns.out) &&
         resample_is_narrow(shape.outer * rows.in * columns.in, shape.outer * rows.out * columns.out);
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
    if constexpr (K == 2) {
      constexpr int R = 4, V = std::max(along, K);
      if (internal::has_tiles<true, R, V>(shape))
        return internal::resample_in_tiles<K, R, V, true>(executor, shape, x, y);
    }
    if constexpr (K == 4) {
      constexpr int V = std::max(along, K);  // a lane has what the lanes next to it need
      if (internal::has_tiles<true, 1, V>(shape))
        return internal::resample_in_steps<V>(executor, internal::resample_twice<K, V, Sum, T, U>, shape,
                                              shape.rows.in + 1, 4, sizeof(T) == 2 ? internal::longest_twice : 7, x, y);
      if (internal::has_tiles<false, 4, across>(shape))
        return internal::resample_in_tiles<K, 4, across, false>(executor, shape, x, y);
      if (internal::has_tiles<false, 1, across>(shape))
        return internal::resample_in_tiles<K, 1, across, false>(executor, shape, x, y);
    }
    if constexpr (K == 8) {
      constexpr int V = std::max(across, 2);
      if (internal::has_tiles<false, 1, V>(shape))
        return internal::resample_in_steps<V>(executor, internal::resample_half<K, V, Sum, T, U>, shape, shape.rows.out,
                                              2, sizeof(T) == 2 ? internal::longest_half : 10, x, y);
    }
    if constexpr (K < 8) {  // taps of each of a few columns are loads of their own
      constexpr int V = std::min(across, 8 / K);
      if (shape.inner == 1 && shape.columns.out % V == 0)
        return internal::resample_in_strips<K, V, true>(executor, shape, x, y);
    }
    constexpr int V = K < 8 ? along : across;
    if (shape.inner % V == 0) return internal::resample_in_strips<K, V, false>(executor, shape, x, y);
    return internal::resample_in_strips<K, 1, false>(executor, shape, x, y);
  });
}

}  // namespace baracuda
