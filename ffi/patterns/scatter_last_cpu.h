// Items that are put into rows, the last one at a position, on CPU threads: a thread has whole rows, whose items it
// takes in their order.
#pragma once

#include <algorithm>
#include <memory>

#include "scatter_last.h"

namespace baracuda {

template <class T>
Status scatter_last(const Executor& executor, const int32_t* index, const T* x, T* y, const ScatterLastShape& shape) {
  parallel_for(executor, shape.rows, shape.count / 4 + shape.items, [&](int64_t row) {
    const int32_t* to = index + row * shape.items;
    const T* from = x + row * shape.items;
    T* mine = y + row * shape.count;
    std::fill_n(mine, shape.count, T{});
    for (int64_t i = 0; i < shape.items; ++i)
      if (uint64_t(int64_t(to[i])) < uint64_t(shape.count)) mine[to[i]] = from[i];
  });
  return {};
}

template <class T>
Status take_last(const Executor& executor, const int32_t* index, const T* dy, T* dx, const ScatterLastShape& shape) {
  parallel_for(executor, shape.rows, 2 * shape.items, [&](int64_t row) {
    const int32_t* to = index + row * shape.items;
    const T* from = dy + row * shape.count;
    T* mine = dx + row * shape.items;
    // Read only where an item was put.
    std::unique_ptr<int32_t[]> last(new int32_t[shape.count]);
    auto is_there = [&](int64_t i) { return uint64_t(int64_t(to[i])) < uint64_t(shape.count); };
    for (int64_t i = 0; i < shape.items; ++i)
      if (is_there(i)) last[to[i]] = int32_t(i);
    for (int64_t i = 0; i < shape.items; ++i) mine[i] = is_there(i) && last[to[i]] == i ? from[to[i]] : T{};
  });
  return {};
}

}  // namespace baracuda
