// The compact pattern on CPU threads. Rows are cut into chunks, which are counted first: each then knows where to
// write. Where rows are many they are not cut, and are read once.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "compact.h"

namespace baracuda {
namespace internal {

// Calls body(i, kept) for each element of a row.
template <class Predicate, class Key, class Body>
void each_element(const Predicate predicate, const Key* row, int64_t first, int64_t last, const Body& body) {
  if (first == 0 && last > 0) body(first, predicate(row[0], row[0], true)), ++first;
  for (int64_t i = first; i < last; ++i) body(i, predicate(row[i], row[i - 1], false));
}

template <class Predicate, class Key>
int64_t count_range(const Predicate predicate, const Key* row, int64_t first, int64_t last) {
  int64_t many = 0;
  for (; first < last; first += 1 << 15) {
    int32_t here = 0;
    int64_t end = std::min<int64_t>(last, first + (1 << 15));
    each_element(predicate, row, first, end, [&](int64_t, bool keep) { here += keep; });
    many += here;
  }
  return many;
}

// Writes the positions in [first, last) that are kept from `at` on, none after `size`. Returns where the next one
// goes.
template <class Predicate, class Key>
int64_t compact_range(const Predicate predicate, const Key* row, int64_t first, int64_t last, int64_t at, int64_t size,
                      int32_t* index) {
  constexpr int64_t block = 1024, word = 8;
  alignas(word) uint8_t keeps[block] = {};
  int32_t kept[block];
  for (; first < last; first += block) {
    int64_t elements = std::min(last - first, block), many = 0;
    each_element(predicate, row, first, first + elements, [&](int64_t i, bool keep) { keeps[i - first] = keep; });
    int32_t found = 0;
    for (int64_t k = 0; k < elements; ++k) found += keeps[k];
    if (found == 0 || at >= size) {
      at += found;
      continue;
    }
    auto keep = [&](int64_t from, int64_t to) {
      for (int64_t k = from; k < to; ++k) kept[many] = int32_t(first + k), many += keeps[k];
    };
    if (found < block / word) {
      for (int64_t k = 0; k < elements; k += word) {
        uint64_t any;
        memcpy(&any, keeps + k, word);
        if (any) keep(k, std::min(k + word, elements));
      }
    } else {
      keep(0, elements);
    }
    std::copy_n(kept, std::min(many, size - at), index + at);
    at += many;
  }
  return at;
}

}  // namespace internal

// `x` are the bits of the elements.
template <class Predicate, class Key>
Status compact_rows(Executor executor, const Predicate& predicate, const Key* x, int32_t* index, int32_t* found,
                    CompactShape shape) {
  constexpr int64_t chunk = 1 << 16;
  if (shape.rows == 0) return {};
  auto finish = [&](int64_t row, int64_t many) {
    int32_t* to = index + row * shape.size;
    std::fill(to + std::min(many, shape.size), to + shape.size, shape.fill);
    found[row] = int32_t(many);
  };
  if (shape.rows >= executor.threads || shape.count <= chunk) {
    int64_t range = chunk / 4 / (shape.count + shape.size + 1) + 1, cost = range * (shape.count + shape.size);
    parallel_for(executor, ceil_div(shape.rows, range), cost, [&](int64_t task) {
      for (int64_t row = task * range; row < std::min(shape.rows, (task + 1) * range); ++row)
        finish(row, internal::compact_range(predicate, x + row * shape.count, 0, shape.count, 0, shape.size,
                                            index + row * shape.size));
    });
    return {};
  }
  int64_t chunks = ceil_div(shape.count, chunk);
  std::vector<int64_t> before(size_t(shape.rows * chunks));
  auto each = [&](auto&& body) {
    parallel_for(executor, shape.rows * chunks, chunk, [&](int64_t task) {
      int64_t row = task / chunks, first = task % chunks * chunk;
      body(task, row, first, std::min(first + chunk, shape.count));
    });
  };
  each([&](int64_t task, int64_t row, int64_t first, int64_t last) {
    before[size_t(task)] = internal::count_range(predicate, x + row * shape.count, first, last);
  });
  for (int64_t row = 0; row < shape.rows; ++row) {
    int64_t many = 0;
    for (int64_t k = 0; k < chunks; ++k) {
      int64_t here = before[size_t(row * chunks + k)];
      before[size_t(row * chunks + k)] = many, many += here;
    }
    finish(row, many);
  }
  each([&](int64_t task, int64_t row, int64_t first, int64_t last) {
    if (before[size_t(task)] < shape.size)
      internal::compact_range(predicate, x + row * shape.count, first, last, before[size_t(task)], shape.size,
                              index + row * shape.size);
  });
  return {};
}

}  // namespace baracuda
