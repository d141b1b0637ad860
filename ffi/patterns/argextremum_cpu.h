// Where extrema are, on CPU threads. A thread has several slices in the lanes of a vector: neighboring columns, or
// what a row is cut into, every so many elements.
#pragma once

#include <algorithm>
#include <vector>

#include "../kernels/extreme.h"
#include "executor.h"

namespace baracuda {
namespace internal {

template <class T>
struct ArgExtremum {
  using Order = Extreme<T>;
  using Value = typename Order::Value;
  // As wide as a value, so that one vector of conditions serves both.
  using Index = std::conditional_t<sizeof(Value) == 8, int64_t, int32_t>;
  static constexpr int64_t lanes = 64 / sizeof(Index);
  struct Best {
    Value value;
    int64_t index;
  };
  Order order;

  // Lanes [0, V) of x, in steps first ... last - 1, which are `step` elements apart.
  template <int64_t V>
  void of_lanes(const T* x, int64_t first, int64_t last, int64_t step, Value (&best)[V], Index (&at)[V]) const {
    for (int64_t k = 0; k < V; ++k) best[k] = order.value(x[first * step + k]), at[k] = Index(first);
    for (int64_t i = first + 1; i < last; ++i)
      for (int64_t k = 0; k < V; ++k) {
        Value value = order.value(x[i * step + k]);
        bool better = Order::beats(value, best[k]);
        best[k] = better ? value : best[k];
        at[k] = better ? Index(i) : at[k];
      }
  }
  // Without a branch, which would be foreseen seldom.
  static Best join(const Best& a, const Best& b) {
    bool later = a.index < b.index;
    const bool of_b = later ? Order::beats(b.value, a.value) : !Order::beats(a.value, b.value);
    return {of_b ? b.value : a.value, of_b ? b.index : a.index};
  }
  // Of count > 0 neighboring elements.
  Best of_row(const T* x, int64_t count) const {
    constexpr int64_t V = 4 * lanes;  // enough that no step waits for the last
    int64_t steps = count / V;
    Best found{order.value(x[0]), 0};
    if (steps > 0) {
      Value best[V];
      Index at[V];
      of_lanes<V>(x, 0, steps, V, best, at);
      for (int64_t k = 0; k < V; ++k) found = join(found, {best[k], int64_t(at[k]) * V + k});
    }
    for (int64_t i = steps * V; i < count; ++i) found = join(found, {order.value(x[i]), i});
    return found;
  }
};

}  // namespace internal

template <class T>
Status argextremum(const Executor& executor, const internal::ArgExtremum<T> op, const T* x, int32_t* index,
                   int64_t outer, int64_t count, int64_t inner) {
  using Op = internal::ArgExtremum<T>;
  using Best = typename Op::Best;
  if (outer * count * inner == 0) return {};
  if (inner == 1) {
    constexpr int64_t range = 1 << 15;
    int64_t parts = outer < executor.threads ? ceil_div(count, range) : 1, length = ceil_div(count, parts);
    std::vector<Best> found(static_cast<size_t>(parts > 1 ? outer * parts : 0));
    int64_t rows = parts > 1 ? 1 : std::max<int64_t>(1, (1 << 14) / count);
    parallel_for(executor, ceil_div(outer, rows) * parts, rows * length / 2, [&](int64_t task) {
      if (parts == 1) {
        for (int64_t row = task * rows; row < std::min(outer, (task + 1) * rows); ++row)
          index[row] = int32_t(op.of_row(x + row * count, count).index);
        return;
      }
      int64_t row = task / parts, from = std::min(task % parts * length, count - 1);
      Best best = op.of_row(x + row * count + from, std::min(length, count - from));
      found[size_t(task)] = {best.value, best.index + from};
    });
    for (int64_t row = 0; parts > 1 && row < outer; ++row) {
      Best best = found[size_t(row * parts)];
      for (int64_t part = 1; part < parts; ++part) best = Op::join(best, found[size_t(row * parts + part)]);
      index[row] = int32_t(best.index);
    }
    return {};
  }
  constexpr int64_t V = Op::lanes;
  int64_t groups = ceil_div(inner, V);
  parallel_for(executor, outer * groups, count * V / 2, [&](int64_t task) {
    int64_t row = task / groups, column = task % groups * V;
    const T* from = x + row * count * inner + column;
    int32_t* to = index + row * inner + column;
    auto lanes = [&](auto width, int64_t k) {
      typename Op::Value best[decltype(width)::value];
      typename Op::Index at[decltype(width)::value];
      op.of_lanes(from + k, 0, count, inner, best, at);
      for (int64_t j = 0; j < decltype(width)::value; ++j) to[k + j] = int32_t(at[j]);
    };
    if (column + V <= inner) return lanes(std::integral_constant<int64_t, V>(), 0);
    for (int64_t k = 0; column + k < inner; ++k) lanes(std::integral_constant<int64_t, 1>(), k);
  });
  return {};
}

template <class T>
Status argextremum(const Executor& executor, const T* x, int32_t* index, int64_t outer, int64_t count, int64_t inner,
                   bool is_max) {
  using Of = Ordered<T>;
  return argextremum<Of>(executor, {extreme<T>(is_max)}, reinterpret_cast<const Of*>(x), index, outer, count, inner);
}

}  // namespace baracuda
