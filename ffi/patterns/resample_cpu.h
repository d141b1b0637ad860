// The resample pattern on CPU threads: sums of rows, which are contiguous, then of the elements of what these gave.
#pragma once

#include <algorithm>
#include <memory>

#include "resample.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t resample_task = 1 << 15;  // terms

// y[o] = sum of taps of x [axis.in], for all o: the last axis, where the elements of a row are next to each other.
template <int known, class Sum, class T, class U>
void resample_row(const Taps<Sum>& axis, int64_t first, int64_t last, const T* x, U* y) {
  const int32_t* begin = axis.begin;
  int32_t most = int32_t(axis.in - axis.count);
  const Sum* weight[known > 0 ? known : 1];
  for (int k = 0; k < std::max(known, 1); ++k) weight[k] = axis.weight + k * axis.out;
  if constexpr (known > 0) {
    // What add_tap gives, without its branch: a tap that is not read is -0 times 0, which changes no sum, not even -0.
    BARACUDA_INDEPENDENT
    for (int64_t o = first; o < last; ++o) {
      int32_t from = std::min(std::max(begin[o], 0), most);  // axis.first(o)
      Sum sum = weight[0][o] * value_if(weight[0][o] != 0, Sum(x[from]));
#pragma GCC unroll 8
      for (int k = 1; k < known; ++k) sum = sum - weight[k][o] * value_if(weight[k][o] != 0, -Sum(x[from + k]));
      y[o] = U(sum);
    }
  } else {
    // Of more taps, one after the other for a few elements at once.
    constexpr int V = 8;
    int64_t o = first;
    while (o + V <= last) {
      int32_t from[V];
      Sum sum[V];
      for (int i = 0; i < V; ++i) {
        from[i] = axis.first(o + i);
        sum[i] = first_tap(weight[0][o + i], Sum(x[from[i]]));
      }
      for (int k = 1; k < axis.count; ++k) {
        const Sum* own = axis.weight + k * axis.out + o;
        for (int i = 0; i < V; ++i) sum[i] = sum[i] - own[i] * value_if(own[i] != 0, -Sum(x[from[i] + k]));
      }
      for (int i = 0; i < V; ++i) y[o + i] = U(sum[i]);
      o = o + V == last ? last : std::min(o + V, last - V);
    }
    for (; o < last; ++o) {
      const T* from = x + axis.first(o);
      Sum sum = first_tap(axis.weight_of(o, 0), Sum(from[0]));
      for (int k = 1; k < axis.count; ++k) sum = add_tap(sum, axis.weight_of(o, k), Sum(from[k]));
      y[o] = U(sum);
    }
  }
}
template <class Sum, class T, class U>
void resample_row_of_any(const Taps<Sum>& axis, int64_t first, int64_t last, const T* x, U* y) {
  switch (axis.count) {
    case 1:
      return resample_row<1>(axis, first, last, x, y);
    case 2:
      return resample_row<2>(axis, first, last, x, y);
    case 4:
      return resample_row<4>(axis, first, last, x, y);
    default:
      return resample_row<0>(axis, first, last, x, y);
  }
}

// The last axis, scaled to twice its size: where all taps are in x, those of neighbors are read in vectors.
template <int K, class Sum, class U>
void resample_row_to_twice(const Taps<Sum>& axis, const Sum* x, U* y) {
  int64_t first = K / 2, last = std::max(first, axis.in - K / 2);  // of x
  const Sum* weight[K];
  for (int k = 0; k < K; ++k) weight[k] = axis.weight + k * axis.out;
  BARACUDA_INDEPENDENT
  for (int64_t i = first; i < last; ++i) {
    const Sum* from = x + i - K / 2;
    Sum even = weight[0][2 * i] * from[0], odd = weight[0][2 * i + 1] * from[1];
#pragma GCC unroll 8
    for (int k = 1; k < K; ++k) {
      even = even + weight[k][2 * i] * from[k];
      odd = odd + weight[k][2 * i + 1] * from[k + 1];
    }
    y[2 * i] = U(even), y[2 * i + 1] = U(odd);
  }
  resample_row<K>(axis, 0, std::min(2 * first, axis.out), x, y);
  if (2 * last < axis.out) resample_row<K>(axis, 2 * last, axis.out, x, y);
}

// The last axis at half the size, from that element on which `begin` is 2 o + offset, all with weights, and before
// `last`: taps of neighbors are two apart.
struct HalvedRange {
  int64_t first = 0, last = 0, offset = 0;

  template <class Sum>
  explicit HalvedRange(const Taps<Sum>& axis) {
    if (axis.in != 2 * axis.out) return;
    int64_t middle = axis.out / 2;
    offset = axis.first(middle) - 2 * middle;
    auto is_one = [&](int64_t o) {
      bool is = axis.begin[o] == 2 * o + offset && axis.first(o) == axis.begin[o];
      for (int k = 0; k < axis.count; ++k) is = is && axis.weight_of(o, k) != 0;
      return is;
    };
    first = last = middle;
    while (first > 0 && is_one(first - 1)) --first;
    while (last < axis.out && is_one(last)) ++last;
  }
};
template <int K, class Sum, class U>
void resample_row_to_half(const Taps<Sum>& axis, const HalvedRange& range, const Sum* x, U* y) {
  const Sum* weight[K];
  for (int k = 0; k < K; ++k) weight[k] = axis.weight + k * axis.out;
  const Sum* all = x + range.offset;
  BARACUDA_INDEPENDENT
  for (int64_t o = range.first; o < range.last; ++o) {
    Sum sum = weight[0][o] * all[2 * o];
#pragma GCC unroll 8
    for (int k = 1; k < K; ++k) sum = sum + weight[k][o] * all[2 * o + k];
    y[o] = U(sum);
  }
  resample_row<K>(axis, 0, range.first, x, y);
  resample_row<K>(axis, range.last, axis.out, x, y);
}

// N rows times their weights, added to sums, or, of the first ones, the beginning of these.
template <int N, bool are_first, class Sum, class T>
void add_rows(const T* const* rows, const Sum* weights, int64_t count, Sum* sums) {
  const T* row[N];
  Sum weight[N];
  for (int n = 0; n < N; ++n) row[n] = rows[n], weight[n] = weights[n];
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    Sum sum = are_first ? weight[0] * Sum(row[0][i]) : sums[i] + weight[0] * Sum(row[0][i]);
#pragma GCC unroll 8
    for (int n = 1; n < N; ++n) sum = sum + weight[n] * Sum(row[n][i]);
    sums[i] = sum;
  }
}

// sums[i] = sum of taps of element o of x [axis.in, stride], at columns first + i. Taps of weight 0 are not read. Four
// rows at once, so that sums are read and written for every fourth one.
template <class Sum, class T>
void sum_rows(const Taps<Sum>& axis, int64_t o, int64_t stride, int64_t first, int64_t count, const T* x, Sum* sums) {
  const T *from = x + axis.first(o) * stride + first, *rows[4];
  Sum weights[4];
  int held = 0;
  bool are_first = true;
  auto add = [&](auto n) {
    are_first ? add_rows<n.value, true>(rows, weights, count, sums)
              : add_rows<n.value, false>(rows, weights, count, sums);
    held = 0, are_first = false;
  };
  for (int k = 0; k < axis.count; ++k, from += stride) {
    Sum weight = axis.weight_of(o, k);
    if (weight == 0) continue;
    rows[held] = from, weights[held] = weight;
    if (++held == 4) add(std::integral_constant<int, 4>());
  }
  if (held == 3) add(std::integral_constant<int, 3>());
  if (held == 2) add(std::integral_constant<int, 2>());
  if (held == 1) add(std::integral_constant<int, 1>());
  if (are_first) std::fill_n(sums, count, Sum(0));
}

// y[i] = sum of taps of element o of sums [K, inner].
template <int K, class Sum, class U>
void sum_columns(const Taps<Sum>& axis, int64_t o, int64_t inner, const Sum* sums, U* y) {
  Sum weight[K];
  bool is_read = true;  // all of them
  for (int k = 0; k < K; ++k) weight[k] = axis.weight_of(o, k), is_read = is_read && weight[k] != 0;
  if (is_read) {
    BARACUDA_INDEPENDENT
    for (int64_t i = 0; i < inner; ++i) {
      Sum sum = weight[0] * sums[i];
#pragma GCC unroll 8
      for (int k = 1; k < K; ++k) sum = sum + weight[k] * sums[k * inner + i];
      y[i] = U(sum);
    }
    return;
  }
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < inner; ++i) {
    Sum sum = first_tap(weight[0], sums[i]);
#pragma GCC unroll 8
    for (int k = 1; k < K; ++k) sum = add_tap(sum, weight[k], sums[k * inner + i]);
    y[i] = U(sum);
  }
}

}  // namespace internal

template <class Sum, class T, class U>
Status resample(const Executor& executor, const ResampleAxis<Sum>& shape, const T* x, U* y) {
  const Taps<Sum>& axis = shape.axis;
  int64_t inner = shape.inner;
  if (inner == 1) {
    int64_t range = std::min(axis.out, std::max<int64_t>(1, internal::resample_task / axis.count));
    int64_t chunks = ceil_div(axis.out, range);
    parallel_for(executor, shape.outer * chunks, range * (axis.count + 1), [&](int64_t task) {
      int64_t outer = task / chunks, first = task % chunks * range;
      internal::resample_row_of_any(axis, first, std::min(axis.out, first + range), x + outer * axis.in,
                                    y + outer * axis.out);
    });
    return {};
  }
  // Rows of y, as many as make a task; long ones in chunks that stay in the first-level cache.
  constexpr int64_t most = 2048;
  int64_t width = std::min(inner, most), chunks = ceil_div(inner, width), rows = shape.outer * axis.out;
  int64_t range = std::max<int64_t>(1, internal::resample_task / (width * axis.count));
  parallel_for(executor, ceil_div(rows, range) * chunks, range * width * (axis.count + 1), [&](int64_t task) {
    Sum sums[most];
    int64_t row = task / chunks * range, end = std::min(rows, row + range);
    int64_t first = task % chunks * width, count = std::min(width, inner - first);
    for (; row < end; ++row) {
      int64_t outer = row / axis.out;
      internal::sum_rows(axis, row - outer * axis.out, inner, first, count, x + outer * axis.in * inner, sums);
      U* to = y + row * inner + first;
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) to[i] = U(sums[i]);
    }
  });
  return {};
}

template <class Sum, class T, class U>
Status resample(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  const Taps<Sum>&rows = shape.rows, &columns = shape.columns;
  int64_t inner = shape.inner, width = columns.in * inner, out_width = columns.out * inner;
  int64_t cost = (width + out_width) * rows.count;
  int64_t range = std::min(rows.out, std::max<int64_t>(4, internal::resample_task / cost));
  int64_t chunks = ceil_div(rows.out, range);
  const internal::HalvedRange halved(columns);
  return for_taps(shape, [&](auto count) {
    parallel_for(executor, shape.outer * chunks, range * cost, [&](int64_t task) {
      std::unique_ptr<Sum[]> sums(new Sum[width]);
      int64_t outer = task / chunks, row = task % chunks * range, end = std::min(rows.out, row + range);
      const T* from = x + outer * rows.in * width;
      for (; row < end; ++row) {
        U* to = y + (outer * rows.out + row) * out_width;
        internal::sum_rows(rows, row, width, 0, width, from, sums.get());
        if (inner == 1) {
          if constexpr (count.value == 2 || count.value == 4)
            if (shape.are_scaled && columns.out == 2 * columns.in && columns.in >= 8) {
              internal::resample_row_to_twice<count.value>(columns, sums.get(), to);
              continue;
            }
          if constexpr (count.value > 1)
            if (halved.last - halved.first >= std::max(8, 2 * count.value)) {
              internal::resample_row_to_half<count.value>(columns, halved, sums.get(), to);
              continue;
            }
          internal::resample_row<count.value>(columns, 0, columns.out, sums.get(), to);
          continue;
        }
        for (int64_t o = 0; o < columns.out; ++o)
          internal::sum_columns<count.value>(columns, o, inner, sums.get() + columns.first(o) * inner, to + o * inner);
      }
    });
    return Status{};
  });
}

}  // namespace baracuda
