// Order statistics on CPU threads: a histogram of the keys' first digits says which of them hold the ranks; only
// elements with these are looked at further.
#pragma once

#include "sort_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t few_ranks = 16;

// The elements of one row with the wanted digits, and the ranks among them.
template <class T>
class Selection {
 public:
  using Key = typename SortKey<T>::Key;
  using Item = KeyAndPosition<Key>;
  static constexpr int bits = 8 * int(sizeof(Key)), width = bits < 11 ? bits : 11, buckets = 1 << width;

  // Finds the elements of `ranks` of x, and calls found(j, item) for each.
  template <class Found>
  void run(const Executor& executor, const T* x, int64_t count, const int32_t* ranks, int64_t many, int64_t parts,
           const Found& found) {
    int64_t length = ceil_div(count, parts);
    counts_.assign(size_t(parts * buckets), 0);
    auto each = [&](const auto& body) {
      parallel_for(executor, parts, 2 * length, [&](int64_t part) {
        body(part * length, std::min(count, (part + 1) * length), &counts_[size_t(part * buckets)]);
      });
    };
    each([&](int64_t from, int64_t to, uint32_t* here) {
      for (int64_t i = from; i < to; ++i) ++here[bucket(x[i])];
    });
    first_.assign(buckets + 1, 0);
    for (int b = 0; b < buckets; ++b) {
      first_[size_t(b) + 1] = first_[size_t(b)];
      for (int64_t part = 0; part < parts; ++part) first_[size_t(b) + 1] += counts_[size_t(part * buckets + b)];
    }
    // The wanted buckets lie one after the other; a part writes after the parts before it.
    wanted_.assign(buckets, 0), begins_.assign(buckets, 0), holder_.resize(size_t(many));
    for (int64_t j = 0; j < many; ++j) {
      holder_[size_t(j)] = int(std::upper_bound(first_.begin(), first_.end(), ranks[j]) - first_.begin()) - 1;
      wanted_[size_t(holder_[size_t(j)])] = 1;
    }
    uint32_t total = 0;
    for (int b = 0; b < buckets; ++b) {
      if (!wanted_[size_t(b)]) continue;
      begins_[size_t(b)] = total;
      for (int64_t part = 0; part < parts; ++part) total += std::exchange(counts_[size_t(part * buckets + b)], total);
    }
    items_.resize(total);
    each([&](int64_t from, int64_t to, uint32_t* to_position) {
      for (int64_t i = from; i < to; ++i) {
        Key key = SortKey<T>::of(x[i], false);
        int b = int(key >> (bits - width));
        if (wanted_[size_t(b)]) items_[to_position[b]++] = Item::of(key, i);
      }
    });
    for (int64_t j = 0; j < many; ++j) {
      size_t b = size_t(holder_[size_t(j)]);
      Item *begin = items_.data() + begins_[b], *at = begin + (ranks[j] - first_[b]);
      std::nth_element(begin, at, begin + (first_[b + 1] - first_[b]));
      found(j, *at);
    }
  }

 private:
  static int bucket(T x) { return int(SortKey<T>::of(x, false) >> (bits - width)); }

  std::vector<uint32_t> counts_, begins_;
  std::vector<int64_t> first_;
  std::vector<uint8_t> wanted_;
  std::vector<int> holder_;
  std::vector<Item> items_;
};

}  // namespace internal

template <class T>
Status select_rows(Executor executor, const T* x, const int32_t* ranks, T* values, int32_t* indices,
                   SelectShape shape) {
  using Item = internal::KeyAndPosition<typename SortKey<T>::Key>;
  if (shape.rows * shape.ranks == 0 || shape.count == 0) return {};
  auto of_row = [&](const Executor& executor, int64_t r, int64_t parts, internal::Selection<T>& selection,
                    std::vector<int32_t>& wanted, std::vector<Item>& items) {
    const T* row = x + r * shape.count;
    const int32_t* from = ranks + shape.rank_row(r) * shape.ranks;
    wanted.resize(size_t(shape.ranks));
    for (int64_t j = 0; j < shape.ranks; ++j)
      wanted[size_t(j)] = std::min(std::max(from[j], 0), int32_t(shape.count - 1));
    auto found = [&](int64_t j, const Item& item) {
      values[r * shape.ranks + j] = row[item.position()], indices[r * shape.ranks + j] = item.position();
    };
    if (shape.ranks <= internal::few_ranks && shape.count > 1024)
      return selection.run(executor, row, shape.count, wanted.data(), shape.ranks, parts, found);
    bool few = shape.ranks <= 2;
    items.resize(size_t(2 * shape.count));
    for (int64_t i = 0; i < shape.count; ++i) items[size_t(i)] = Item::of(SortKey<T>::of(row[i], false), i);
    Item* begin = items.data();
    if (!few) begin = internal::sort_items(begin, begin + shape.count, shape.count);
    for (int64_t j = 0; j < shape.ranks; ++j) {
      Item* at = begin + wanted[size_t(j)];
      if (few) std::nth_element(begin, at, begin + shape.count);
      found(j, *at);
    }
  };
  auto rows = [&](const Executor& executor, int64_t first, int64_t last, int64_t parts) {
    internal::Selection<T> selection;
    std::vector<int32_t> wanted;
    std::vector<Item> items;
    for (int64_t r = first; r < last; ++r) of_row(executor, r, parts, selection, wanted, items);
  };
  if (int64_t parts = internal::row_parts(executor, shape.rows, shape.count); parts > 1) {
    rows(executor, 0, shape.rows, parts);
    return {};
  }
  Executor alone{1, nullptr, nullptr};
  internal::for_rows(executor, shape.rows, 4 * shape.count,
                     [&](int64_t first, int64_t last) { rows(alone, first, last, 1); });
  return {};
}

}  // namespace baracuda
