// The resample pattern on CPU threads: sums of rows, which are contiguous, then of the elements of what these gave.
#pragma once

#include <algorithm>
#include <vector>

#include "resample.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t resample_task = 1 << 15;  // terms

// y[o] = sum of taps of x [axis.in], for all o: the last axis, where the elements of a row are next to each other.
template <int known, class Sum, class T, class U>
void resample_row(const Taps<Sum>& axis, int64_t first, int64_t last, const T* x, U* y) {
  int count = known > 0 ? known : axis.count;
  BARACUDA_INDEPENDENT
  for (int64_t o = first; o < last; ++o) {
    int32_t begin = axis.first(o);
    Sum sum = first_tap(axis.weight_of(o, 0), Sum(x[begin]));
    for (int k = 1; k < count; ++k) sum = add_tap(sum, axis.weight_of(o, k), Sum(x[begin + k]));
    y[o] = U(sum);
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

// sums[i] = sum of taps of element o of x [axis.in, stride], at columns first + i. Taps of weight 0 are not read.
template <class Sum, class T>
void sum_rows(const Taps<Sum>& axis, int64_t o, int64_t stride, int64_t first, int64_t count, const T* x, Sum* sums) {
  const T* from = x + axis.first(o) * stride + first;
  bool is_first = true;
  for (int k = 0; k < axis.count; ++k, from += stride) {
    Sum weight = axis.weight_of(o, k);
    if (weight == 0) continue;
    if (is_first) {
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) sums[i] = weight * Sum(from[i]);
    } else {
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) sums[i] = sums[i] + weight * Sum(from[i]);
    }
    is_first = false;
  }
  if (is_first) std::fill_n(sums, count, Sum(0));
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
  int64_t range = std::min(rows.out, std::max<int64_t>(1, internal::resample_task / cost));
  int64_t chunks = ceil_div(rows.out, range);
  return for_taps(shape, [&](auto count) {
    parallel_for(executor, shape.outer * chunks, range * cost, [&](int64_t task) {
      std::vector<Sum> sums(width);
      int64_t outer = task / chunks, row = task % chunks * range, end = std::min(rows.out, row + range);
      const T* from = x + outer * rows.in * width;
      for (; row < end; ++row) {
        U* to = y + (outer * rows.out + row) * out_width;
        internal::sum_rows(rows, row, width, 0, width, from, sums.data());
        if (inner == 1) {
          internal::resample_row<count.value>(columns, 0, columns.out, sums.data(), to);
          continue;
        }
        for (int64_t o = 0; o < columns.out; ++o) {
          const Sum* values = sums.data() + columns.first(o) * inner;
          Sum weight[count.value];
          for (int k = 0; k < count.value; ++k) weight[k] = columns.weight_of(o, k);
          for (int64_t i = 0; i < inner; ++i) {
            Sum sum = first_tap(weight[0], values[i]);
            for (int k = 1; k < count.value; ++k) sum = add_tap(sum, weight[k], values[k * inner + i]);
            to[o * inner + i] = U(sum);
          }
        }
      }
    });
    return Status{};
  });
}

}  // namespace baracuda
