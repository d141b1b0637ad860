// Elements that are put into rows of zeros, or combined in rows, on CPU threads: a thread has whole rows, or parts of
// the elements where no two go to one position.
#pragma once

#include <algorithm>
#include <vector>

#include "../kernels/scatter.h"
#include "sort.h"

namespace baracuda {

// Elements that are combined in their order by positions in rows. A thread has whole rows.
template <class F>
Status scatter_combined(const Executor& executor, const F& f, const int32_t* index, const typename F::Element* src,
                        const ScatterShape& shape) {
  using T = typename F::Element;
  using State = typename F::State;
  parallel_for(executor, shape.rows, shape.count / 4 + shape.items, [&](int64_t row) {
    int64_t begin = row * shape.count;
    const int32_t* to = index + row * shape.items;
    const T* values = src + row * shape.items;
    constexpr int64_t most = 256;
    State few[most];
    std::vector<State> many(shape.count > most ? size_t(shape.count) : 0);
    State* states = shape.count > most ? many.data() : few;
    using Read = decltype(f.read(begin));
    for (int64_t i = 0; i < shape.count; ++i) states[i] = f.first(F::starts ? f.read(begin + i) : Read{});
    for (int64_t j = 0; j < shape.items; ++j)
      if (int64_t i = shape.position(to[j]); uint64_t(i) < uint64_t(shape.count))
        f.combine(states[i], values[j], int32_t(j));
    for (int64_t i = 0; i < shape.count; ++i) f.write(begin + i, F::starts ? Read{} : f.read(begin + i), states[i]);
    if constexpr (GivesItems<F>)
      for (int64_t j = 0; j < shape.items; ++j) {
        int64_t i = shape.position(to[j]), item = row * shape.items + j;
        if (uint64_t(i) < uint64_t(shape.count))
          f.give(item, values[j], states[i]);
        else
          f.drop(item);
      }
  });
  return {};
}

template <class T>
Status scatter_rows(Executor executor, const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
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
  return scatter_combined(executor, ScatterSum<T>{nullptr, dx}, index, dy, shape);
}

}  // namespace baracuda
