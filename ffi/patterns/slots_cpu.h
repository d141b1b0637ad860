// The slots pattern on CPU threads: a task has a few items, or rows.
#pragma once

#include <algorithm>

#include "slots.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// Calls body(i) for i < count, each of which takes so many steps.
template <class Body>
void for_few(const Executor& executor, int64_t count, int64_t steps, const Body& body) {
  constexpr int64_t task_steps = 1 << 15;
  int64_t range = std::max<int64_t>(1, task_steps / std::max<int64_t>(steps, 1));
  parallel_for(executor, ceil_div(count, range), range * (steps + 16), [&](int64_t task) {
    for (int64_t i = task * range; i < std::min(count, (task + 1) * range); ++i) body(i);
  });
}

template <class T>
void clear_free_rows(const Executor& executor, const Slots<T>& slots, T* y) {
  for_few(executor, slots.shape.all_rows(), slots.shape.columns, [&](int64_t row) {
    if (slots.is_free(row)) std::fill_n(y + row * slots.shape.columns, slots.shape.columns, T(0));
  });
}

template <class T>
void write_weighted(const T* from, Accumulator<T> weight, T* to, int64_t columns) {
  BARACUDA_INDEPENDENT
  for (int64_t c = 0; c < columns; ++c) to[c] = T(weight * Accumulator<T>(from[c]));
}

}  // namespace internal

// y of rows x: each item the weighted sum of those of its slots, in order.
template <class T>
Status slot_sum(const Executor& executor, const Slots<T>& slots, const T* x, T* y) {
  using Wide = Accumulator<T>;
  constexpr int64_t width = 512;
  const SlotShape& shape = slots.shape;
  internal::for_few(executor, shape.all_items(), shape.slots * shape.columns, [&](int64_t i) {
    auto item = slots.item(i);
    for (int64_t first = 0; first < shape.columns; first += width) {
      int64_t columns = std::min(width, shape.columns - first);
      Wide sums[width];
      std::fill_n(sums, columns, Wide(0));
      for (int64_t slot = 0; slot < shape.slots; ++slot) {
        int64_t element = item.element(shape, slot);
        if (element < 0) continue;
        const T* from = x + element + first;
        Wide weight = item.weights[slot];
        BARACUDA_INDEPENDENT
        for (int64_t c = 0; c < columns; ++c) sums[c] += weight * Wide(from[c]);
      }
      T* to = y + i * shape.columns + first;
      BARACUDA_INDEPENDENT
      for (int64_t c = 0; c < columns; ++c) to[c] = T(sums[c]);
    }
  });
  return {};
}

// Rows y of items x: each item, times the weight, in the rows of its slots; 0 in rows that no slot names.
template <class T>
Status slot_spread(const Executor& executor, const Slots<T>& slots, const T* x, T* y) {
  const SlotShape& shape = slots.shape;
  internal::clear_free_rows(executor, slots, y);
  internal::for_few(executor, shape.all_items(), shape.slots * shape.columns, [&](int64_t i) {
    auto item = slots.item(i);
    for (int64_t slot = 0; slot < shape.slots; ++slot)
      if (int64_t element = item.element(shape, slot); element >= 0)
        internal::write_weighted(x + i * shape.columns, item.weights[slot], y + element, shape.columns);
  });
  return {};
}

// What dy of a sum's items gives: dx as of a spread, and the dot product of each slot's row and its item's dy.
template <class T>
Status slot_gradient(const Executor& executor, const Slots<T>& slots, const T* x, const T* dy, T* dx,
                     Accumulator<T>* dots) {
  using Wide = Accumulator<T>;
  constexpr int lanes = 16;
  const SlotShape& shape = slots.shape;
  internal::clear_free_rows(executor, slots, dx);
  internal::for_few(executor, shape.all_items(), 2 * shape.slots * shape.columns, [&](int64_t i) {
    auto item = slots.item(i);
    const T* of_item = dy + i * shape.columns;
    for (int64_t slot = 0; slot < shape.slots; ++slot) {
      int64_t element = item.element(shape, slot), column = 0;
      Wide sums[lanes] = {}, total = 0;
      if (element >= 0) {
        const T* from = x + element;
        for (; column + lanes <= shape.columns; column += lanes)
          for (int k = 0; k < lanes; ++k) sums[k] += Wide(from[column + k]) * Wide(of_item[column + k]);
        for (; column < shape.columns; ++column) total += Wide(from[column]) * Wide(of_item[column]);
        internal::write_weighted(of_item, item.weights[slot], dx + element, shape.columns);
      }
      for (int k = 0; k < lanes; ++k) total += sums[k];
      dots[i * shape.slots + slot] = total;
    }
  });
  return {};
}

}  // namespace baracuda
