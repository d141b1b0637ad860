// The take pattern on CPU threads.
#pragma once

#include "take.h"

namespace baracuda {

template <class Element>
Status take_rows(const Executor& executor, const TakeShape& shape, const int32_t* index, const Element* x, Element fill,
                 Element* y) {
  constexpr int64_t task_elements = (1 << 17) / sizeof(Element);
  int64_t all = shape.batches * shape.rows, width = std::min(shape.columns, task_elements);
  int64_t parts = ceil_div(shape.columns, width), range = task_elements / width;
  parallel_for(executor, ceil_div(all, range) * parts, range * (width + 8) * int64_t(sizeof(Element)) / 4,
               [&](int64_t task) {
                 int64_t row = task / parts * range, end = std::min(all, row + range);
                 int64_t first = task % parts * width, count = std::min(width, shape.columns - first);
                 for (; row < end; ++row) {
                   int64_t from = shape.position(index, row);
                   Element* to = y + row * shape.columns + first;
                   if (from < 0)
                     std::fill_n(to, count, fill);
                   else if (count == 1)
                     *to = x[from + first];
                   else
                     memcpy(to, x + from + first, size_t(count) * sizeof(Element));
                 }
               });
  return {};
}

}  // namespace baracuda
