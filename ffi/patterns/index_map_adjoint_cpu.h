// The adjoint of the index_map pattern on CPU threads: a row of x, along its last axis, adds up ranges of y.
#pragma once

#include <vector>

#include "index_map_adjoint.h"
#include "index_map_cpu.h"

namespace baracuda {
namespace internal {

// Adds all of y, from `y` on, that came from a row, along whose axis there may be a term.
template <class Wide, class T>
void add_row(const AddMap& map, const T* y, Wide* sums) {
  int last = map.last();
  int64_t n = map.size[last];
  if (map.term_of[last] < 0) {
    int64_t stride = map.stride[last];
    for (int64_t j = 0; j < n; ++j) sums[j] += Wide(y[j * stride]);
    return;
  }
  const AddTerm& term = map.term[map.term_of[last]];
  int64_t stride = term.stride;
  if (term.fold == Fold::constant) {
    for (int64_t k = 0; k < term.kernel; ++k) {
      const T* from = y + k * term.kernel_stride;
      int64_t at = k * term.dilation + term.offset;
      int64_t begin = at < 0 ? ceil_div(-at, term.step) : 0;
      int64_t end = at < n ? std::min(term.count, (n - 1 - at) / term.step + 1) : 0;
      if (term.step == 1 && stride == 1)
        for (int64_t i = begin; i < end; ++i) sums[at + i] += Wide(from[i]);
      else
        for (int64_t i = begin; i < end; ++i) sums[at + i * term.step] += Wide(from[i * stride]);
    }
    return;
  }
  for (int64_t i = 0; i < term.count;) {
    FoldRun run = fold_run(term.fold, i + term.offset, n, 1, term.count - i);
    for (int64_t r = 0; r < run.count; ++r) sums[run.first + run.slope * r] += Wide(y[(i + r) * stride]);
    i += run.count;
  }
}

}  // namespace internal

// `map` has one axis at least, and no empty one.
template <class T>
Status add_mapped(const Executor& executor, const AddMap& map, const T* y, T* x) {
  using Wide = Accumulator<T>;
  constexpr int64_t task_steps = 1 << 15;
  int last = map.last();
  int64_t columns = map.size[last], rows = map.elements() / columns, steps = columns;
  int outer = map.terms - (map.term_of[last] >= 0);
  Origins<int64_t> terms[add_terms];
  for (int k = 0; k < map.axes; ++k)
    if (int t = map.term_of[k]; t >= 0) {
      terms[t] = Origins<int64_t>(map.term[t], map.size[k]);
      steps *= map.term[t].kernel;
    }
  int64_t range = task_steps / (steps + 32) + 1;
  parallel_for(executor, ceil_div(rows, range), range * (steps + 32), [&](int64_t task) {
    std::vector<Wide> sums(size_t(columns), Wide(0));
    for (int64_t row = task * range; row < std::min(rows, (task + 1) * range); ++row) {
      int64_t position = 0, rest = row, j[add_terms];
      for (int k = last - 1; k >= 0; --k) {
        int64_t i = rest % map.size[k];
        rest /= map.size[k];
        if (int t = map.term_of[k]; t >= 0)
          j[t] = i;
        else
          position += i * map.stride[k];
      }
      std::fill(sums.begin(), sums.end(), Wide(0));
      for_origins<add_terms>(terms, outer, j, position,
                             [&](int64_t at) { internal::add_row(map, y + at, sums.data()); });
      for (int64_t i = 0; i < columns; ++i) x[row * columns + i] = T(sums[size_t(i)]);
    }
  });
  return {};
}

}  // namespace baracuda
