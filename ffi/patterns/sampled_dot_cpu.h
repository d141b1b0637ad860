// The sampled dot products pattern on CPU threads.
#pragma once

#include <algorithm>

#include "sampled_dot.h"

namespace baracuda {

template <class T>
Status sampled_dot(const Executor& executor, const SampledDot<T>& work) {
  using Sum = typename SampledDot<T>::Sum;
  constexpr int lanes = 16;
  constexpr int64_t task_columns = 1 << 15;
  int64_t dots = work.shape.dots(), width = work.shape.width;
  int64_t range = std::max<int64_t>(1, task_columns / std::max<int64_t>(width, 1));
  parallel_for(executor, ceil_div(dots, range), range * (width + 16), [&](int64_t task) {
    for (int64_t dot = task * range; dot < std::min(dots, (task + 1) * range); ++dot) {
      const T *x, *y;
      work.operands(dot, x, y);
      Sum sums[lanes] = {}, total = 0;
      int64_t column = 0;
      if (x != nullptr) {
        for (; column + lanes <= width; column += lanes)
          for (int k = 0; k < lanes; ++k) sums[k] += Sum(x[column + k]) * Sum(y[column + k]);
        for (; column < width; ++column) total += Sum(x[column]) * Sum(y[column]);
      }
      for (int k = 0; k < lanes; ++k) total += sums[k];
      work.out[dot] = total;
    }
  });
  return {};
}

}  // namespace baracuda
