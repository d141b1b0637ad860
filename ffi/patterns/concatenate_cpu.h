// The concatenate pattern on CPU threads, each with a range of y.
#pragma once

#include "concatenate.h"

namespace baracuda {

// Elements of the chunks go to y, or, to split it, those of y to the chunks.
template <bool is_split, class Element>
Status concatenate_rows(const Executor& executor, const Chunks& chunks, int64_t rows, int64_t columns, Element* y) {
  constexpr int64_t task_elements = (1 << 17) / sizeof(Element);
  int64_t first = chunks.start[0], width = chunks.start[chunks.count] - first, elements = rows * width;
  parallel_for(executor, ceil_div(elements, task_elements), task_elements * int64_t(sizeof(Element)) / 4,
               [&](int64_t task) {
                 int64_t element = task * task_elements, end = std::min(elements, element + task_elements);
                 int64_t row = element / width, column = first + element % width;
                 for (int i = chunks.of(column); element < end;) {
                   int64_t size = chunks.start[i + 1] - chunks.start[i], at = column - chunks.start[i];
                   int64_t count = std::min(size - at, end - element);
                   Element* there = y + row * columns + column;
                   Element* here = static_cast<Element*>(chunks.chunk[i]) + row * size + at;
                   memcpy(is_split ? here : there, is_split ? there : here, size_t(count) * sizeof(Element));
                   element += count, column += count;
                   if (++i == chunks.count) i = 0, column = first, ++row;
                 }
               });
  return {};
}

}  // namespace baracuda
