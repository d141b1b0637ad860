// The search pattern on CPU threads. A sequence that many values are looked up in is turned into keys first. A worker
// searches for a few values at once: a single search would wait for memory at each of its steps.
#pragma once

#include <vector>

#include "search.h"

namespace baracuda {
namespace internal {

inline constexpr int search_lanes = 16;

// Keys as wide as the processor loads many of at once.
template <class T>
using WideKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// SortKey's, by masks: of conditions the compiler would make branches, which signs at random defeat.
template <class T>
inline WideKey<T> wide_key(T x) {
  using Order = SortKey<T>;
  using Key = typename Order::Key;
  Key bits = bit_cast<Key>(x);
  if constexpr (!is_float<T>) return std::is_signed_v<T> ? Key(bits ^ Order::high) : bits;
  constexpr auto inf = std::numeric_limits<Comparable<T>>::infinity();
  Key magnitude = bits & Key(~Order::high), infinity = bit_cast<Key>(T(inf));
  bits &= Key(-Key(magnitude != 0));
  bits ^= Key(-Key(bits >> (8 * sizeof(T) - 1))) | Order::high;
  return Key(bits | Key(-Key(magnitude > infinity)));
}

template <bool right, class T>
void search_keys(const WideKey<T>* keys, int64_t count, const T* values, int64_t many, int32_t* index) {
  constexpr int W = search_lanes;
  auto before = [](WideKey<T> element, WideKey<T> key) { return right ? element <= key : element < key; };
  auto group = [&](const T* values, int32_t* index) {
    WideKey<T> key[W];
    int32_t first[W];
    for (int k = 0; k < W; ++k) key[k] = wide_key(values[k]), first[k] = 0;
    int32_t left = int32_t(count);
    while (left > 1) {
      int32_t half = left / 2;
      const WideKey<T>* elements = keys + half - 1;
      for (int k = 0; k < W; ++k) first[k] += before(elements[first[k]], key[k]) ? half : 0;
      left -= half;
    }
    for (int k = 0; k < W; ++k) index[k] = first[k] + (left == 1 && before(keys[first[k]], key[k]));
  };
  int64_t i = 0;
  for (; i + W <= many; i += W) group(values + i, index + i);
  if (i == many) return;
  T last[W] = {};
  int32_t found[W];
  std::copy(values + i, values + many, last);
  group(last, found);
  std::copy(found, found + (many - i), index + i);
}

// The keys of [rows, count] elements.
template <class T>
std::vector<WideKey<T>> keys_of(const Executor& executor, const T* elements, int64_t many) {
  constexpr int64_t range = 1 << 15;
  std::vector<WideKey<T>> keys(static_cast<size_t>(many));
  parallel_for(executor, ceil_div(many, range), range, [&](int64_t task) {
    int64_t end = std::min(many, (task + 1) * range);
    for (int64_t i = task * range; i < end; ++i) keys[size_t(i)] = wide_key(elements[i]);
  });
  return keys;
}

}  // namespace internal

template <class T>
Status search_rows(Executor executor, const T* sequence, const T* values, int32_t* index, bool right,
                   SearchShape shape) {
  constexpr int64_t range = 1 << 12;
  if (shape.rows * shape.values == 0) return {};
  // Those of one sequence are neighbors.
  int64_t many = shape.rows / shape.sequence_rows * shape.values, ranges = ceil_div(many, range), steps = 1;
  while (steps < 32 && shape.count >> steps) ++steps;
  bool by_keys = shape.count > 0 && many * steps >= shape.count;
  auto keys = internal::keys_of(executor, sequence, by_keys ? shape.sequence_rows * shape.count : 0);
  int64_t cost = std::min(many, range) * steps;
  parallel_for(executor, shape.sequence_rows * ranges, cost, [&](int64_t task) {
    int64_t row = task / ranges, from = row * many + task % ranges * range;
    int64_t length = std::min(range, (row + 1) * many - from);
    if (by_keys) {
      auto search = right ? internal::search_keys<true, T> : internal::search_keys<false, T>;
      return search(keys.data() + row * shape.count, shape.count, values + from, length, index + from);
    }
    Search<T> search{sequence + row * shape.count, shape.count, right};
    for (int64_t i = from; i < from + length; ++i) index[i] = int32_t(search.of(values[i]));
  });
  return {};
}

}  // namespace baracuda
