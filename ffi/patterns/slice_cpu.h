// The slice pattern on CPU threads, each with rows of the block.
#pragma once

#include "slice.h"

namespace baracuda {

inline Status copy_bytes(const Executor& executor, const void* from, void* to, int64_t bytes) {
  constexpr int64_t task_bytes = 1 << 20;
  parallel_for(executor, ceil_div(bytes, task_bytes), task_bytes / 8, [&](int64_t task) {
    int64_t first = task * task_bytes, count = std::min(task_bytes, bytes - first);
    memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first, size_t(count));
  });
  return {};
}

// The block is written into the array, or read from it.
template <bool is_write, class Element>
Status move_block(const Executor& executor, const SliceShape& shape, Element* whole, Element* block) {
  constexpr int64_t task_elements = (1 << 17) / sizeof(Element);
  int last = shape.axes - 1;
  int64_t columns = shape.axis[last].size, rows = shape.elements / columns;
  int64_t width = std::min(columns, task_elements), parts = ceil_div(columns, width), range = task_elements / width;
  int64_t tasks = ceil_div(shape.batches * rows, range) * parts;
  parallel_for(executor, tasks, range * (width + 16) * int64_t(sizeof(Element)) / 4, [&](int64_t task) {
    int64_t row = task / parts * range, end = std::min(shape.batches * rows, row + range);
    int64_t first = task % parts * width, count = std::min(columns - first, width);
    for (; row < end; ++row) {
      int64_t rest = row % rows, batch = row / rows, position = batch * shape.whole_elements;
      bool inside = true;
      for (int k = last - 1; k >= 0; --k) {
        int64_t at = shape.first(batch, k) + rest % shape.axis[k].size;
        inside = inside && shape.has(k, at);
        position += at * shape.axis[k].stride;
        rest /= shape.axis[k].size;
      }
      int64_t at = shape.first(batch, last) + first, begin = 0, stop = count;
      if (shape.leaves_out) {
        begin = std::clamp<int64_t>(-at, 0, count);
        stop = inside ? std::clamp(shape.axis[last].length() - at, begin, count) : begin;
      }
      Element *there = whole + position + at, *here = block + row * columns + first;
      size_t bytes = size_t(stop - begin) * sizeof(Element);
      if (is_write) {
        memcpy(there + begin, here + begin, bytes);
      } else {
        memset(static_cast<void*>(here), 0, size_t(begin) * sizeof(Element));
        memcpy(here + begin, there + begin, bytes);
        memset(static_cast<void*>(here + stop), 0, size_t(count - stop) * sizeof(Element));
      }
    }
  });
  return {};
}

}  // namespace baracuda
