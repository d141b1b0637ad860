// Elements that are put into rows of zeros, on CPU threads: a thread has whole rows, or parts of the elements where no
// two go to one position.
#pragma once

#include <algorithm>
#include <vector>

#include "sort.h"

namespace baracuda {

template <class T>
Status scatter_rows(Executor executor, const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
  using Wide = Accumulator<T>;
  constexpr int64_t range = 1 << 14;
  if (shape.rows * shape.count == 0) return {};
  if (shape.unique) {
    bool is_permutation = shape.items == shape.count;
    int64_t length = std::max(shape.count, range), parts = ceil_div(shape.count, length);
    if (shape.rows < executor.threads) length = range, parts = ceil_div(shape.count, length);
    if (!is_permutation)
      parallel_for(executor, shape.rows * parts, length / 4, [&](int64_t task) {
        int64_t row = task / parts, from = task % parts * length;
        std::fill_n(dx + row * shape.count + from, std::min(length, shape.count - from), T{});
      });
    parts = ceil_div(shape.items, length);
    parallel_for(executor, shape.rows * parts, std::min(length, shape.items), [&](int64_t task) {
      int64_t row = task / parts, from = task % parts * length;
      const int32_t* to = index + row * shape.items;
      const T* x = dy + row * shape.items;
      for (int64_t j = from; j < std::min(shape.items, from + length); ++j)
        if (uint32_t(to[j]) < uint64_t(shape.count)) dx[row * shape.count + to[j]] = x[j];
    });
    return {};
  }
  parallel_for(executor, shape.rows, shape.count / 4 + shape.items, [&](int64_t row) {
    T* out = dx + row * shape.count;
    const int32_t* to = index + row * shape.items;
    const T* x = dy + row * shape.items;
    if constexpr (std::is_same_v<T, Wide> || std::is_integral_v<T>) {
      std::fill_n(out, shape.count, T{});
      for (int64_t j = 0; j < shape.items; ++j)
        if (uint32_t(to[j]) < uint64_t(shape.count)) out[to[j]] = T(Wide(out[to[j]]) + Wide(x[j]));
    } else {
      std::vector<Wide> sums(size_t(shape.count), Wide(0));
      for (int64_t j = 0; j < shape.items; ++j)
        if (uint32_t(to[j]) < uint64_t(shape.count)) sums[size_t(to[j])] += Wide(x[j]);
      for (int64_t i = 0; i < shape.count; ++i) out[i] = T(sums[size_t(i)]);
    }
  });
  return {};
}

}  // namespace baracuda
