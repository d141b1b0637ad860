// Sorts on CPU threads: radix sorts of keys, from the lowest digit up, which skip digits that all keys share. Each
// thread has rows of its own; a few long rows have all threads, which count and move a part each.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "sort.h"

namespace baracuda {
namespace internal {

// What is moved where positions matter. Of equal keys the earlier position comes first.
template <class Key_, bool is_wide = (sizeof(Key_) == 8)>
struct KeyAndPosition {
  using Key = Key_;
  uint64_t bits;

  static KeyAndPosition of(Key key, int64_t position) { return {uint64_t(key) << 32 | uint64_t(position)}; }
  Key key() const { return Key(bits >> 32); }
  int32_t position() const { return int32_t(bits); }
  bool operator<(const KeyAndPosition& other) const { return bits < other.bits; }
};
template <class Key_>
struct KeyAndPosition<Key_, true> {
  using Key = Key_;
  Key high;
  uint32_t low;

  static KeyAndPosition of(Key key, int64_t position) { return {key, uint32_t(position)}; }
  Key key() const { return high; }
  int32_t position() const { return int32_t(low); }
  bool operator<(const KeyAndPosition& other) const { return high != other.high ? high < other.high : low < other.low; }
};

// What is moved where they do not.
template <class Key_>
struct KeyAlone {
  using Key = Key_;
  Key bits;

  static KeyAlone of(Key key, int64_t) { return {key}; }
  Key key() const { return bits; }
  int32_t position() const { return 0; }
  bool operator<(const KeyAlone& other) const { return bits < other.bits; }
};

// Memory that is not cleared before it is used.
template <class Item>
struct Items {
  std::unique_ptr<Item[]> memory;

  explicit Items(int64_t count) : memory(new Item[size_t(count)]) {}
  Item* get() { return memory.get(); }
};

template <int width, class Item>
int digit(const Item& item, int position) {
  return int(item.key() >> (position * width)) & ((1 << width) - 1);
}

// One row, by one thread. Returns which of the two has the result.
template <int width, class Item>
Item* radix_sort(Item* items, Item* other, int64_t count) {
  constexpr int bits = 8 * int(sizeof(typename Item::Key)), digits = (bits + width - 1) / width, buckets = 1 << width;
  std::vector<uint32_t> counts(size_t(digits) * buckets);
  for (int64_t i = 0; i < count; ++i)
    for (int d = 0; d < digits; ++d) ++counts[size_t(d * buckets + digit<width>(items[i], d))];
  for (int d = 0; d < digits; ++d) {
    uint32_t* here = &counts[size_t(d) * buckets];
    if (here[digit<width>(items[0], d)] == uint32_t(count)) continue;
    uint32_t before = 0;
    for (int b = 0; b < buckets; ++b) before += std::exchange(here[b], before);
    for (int64_t i = 0; i < count; ++i) other[here[digit<width>(items[i], d)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

template <class Item>
Item* sort_items(Item* items, Item* other, int64_t count) {
  if (count <= 96) {
    std::sort(items, items + count);
    return items;
  }
  if (sizeof(typename Item::Key) >= 4 && count >= 4096) return radix_sort<11>(items, other, count);
  return radix_sort<8>(items, other, count);
}

// One row, by all threads. A part's items of one digit go after those of the parts before it.
template <class Item>
Item* sort_items(const Executor& executor, Item* items, Item* other, int64_t count, int64_t parts) {
  constexpr int width = 8, buckets = 1 << width, digits = int(sizeof(typename Item::Key));
  int64_t length = ceil_div(count, parts);
  std::vector<uint32_t> counts(size_t(parts * buckets));
  for (int d = 0; d < digits; ++d) {
    std::fill(counts.begin(), counts.end(), 0);
    parallel_for(executor, parts, length, [&](int64_t part) {
      uint32_t here[buckets] = {};
      for (int64_t i = part * length; i < std::min(count, (part + 1) * length); ++i) ++here[digit<width>(items[i], d)];
      std::copy_n(here, buckets, &counts[size_t(part * buckets)]);
    });
    uint32_t before = 0, most = 0;
    for (int b = 0; b < buckets; ++b) {
      uint32_t first = before;
      for (int64_t part = 0; part < parts; ++part) before += std::exchange(counts[size_t(part * buckets + b)], before);
      most = std::max(most, before - first);
    }
    if (most == uint32_t(count)) continue;
    parallel_for(executor, parts, length, [&](int64_t part) {
      uint32_t to[buckets];
      std::copy_n(&counts[size_t(part * buckets)], buckets, to);
      for (int64_t i = part * length; i < std::min(count, (part + 1) * length); ++i)
        other[to[digit<width>(items[i], d)]++] = items[i];
    });
    std::swap(items, other);
  }
  return items;
}

// Whether a key alone gives its number back: not for NaNs and -0.
template <class T>
bool is_plain(T x, typename SortKey<T>::Key key, bool descending) {
  using Key = typename SortKey<T>::Key;
  if constexpr (!is_float<T>) return true;
  return bit_cast<Key>(SortKey<T>::number(key, descending)) == bit_cast<Key>(x);
}

template <class T>
bool are_plain(const T* x, int64_t count, bool descending) {
  if constexpr (!is_float<T>) return true;
  int all = 1;
  for (int64_t i = 0; i < count; ++i) all &= is_plain(x[i], SortKey<T>::of(x[i], descending), descending);
  return all;
}

// Where a sort reads and writes one row.
template <class T>
struct SortRow {
  const T* x;
  T* values;
  int32_t* indices;
  bool descending, plain;

  template <class Item>
  void read(Item* items, int64_t from, int64_t to) const {
    for (int64_t i = from; i < to; ++i) items[i] = Item::of(SortKey<T>::of(x[i], descending), i);
  }
  template <class Item>
  void write(const Item* items, int64_t from, int64_t to) const {
    if (plain)
      for (int64_t i = from; i < to; ++i) values[i] = SortKey<T>::number(items[i].key(), descending);
    else
      for (int64_t i = from; i < to; ++i) values[i] = x[items[i].position()];
    if (indices)
      for (int64_t i = from; i < to; ++i) indices[i] = items[i].position();
  }
};

template <class T>
SortRow<T> sort_row(const T* x, T* values, int32_t* indices, const SortShape& shape, int64_t row) {
  return {x + row * shape.count, values + row * shape.kept, indices ? indices + row * shape.kept : nullptr,
          shape.descending, false};
}

// A key that at least `kept` of items [from, to) do not exceed: of the best of many lanes, the one with that rank. The
// largest key where items are too few to say.
template <class T, class Key = typename SortKey<T>::Key>
Key least_of_lanes(const SortRow<T>& row, int64_t from, int64_t to, int64_t kept, std::vector<Key>& least) {
  constexpr int64_t most_steps = 64;
  int64_t lanes = 16;
  while (lanes < 2 * kept) lanes *= 2;
  int64_t steps = std::min((to - from) / lanes, most_steps);
  if (steps < 2) return Key(~Key(0));
  least.assign(size_t(lanes), Key(~Key(0)));
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Key key = SortKey<T>::of(row.x[from + s * lanes + lane], row.descending), &best = least[size_t(lane)];
      best = key < best ? key : best;
    }
  std::nth_element(least.begin(), least.begin() + (kept - 1), least.end());
  return least[size_t(kept - 1)];
}

// The best of a row's items, and memory to find them.
template <class T>
struct Best {
  using Key = typename SortKey<T>::Key;
  using Item = KeyAndPosition<Key>;
  std::vector<Item> items;
  std::vector<Key> least;

  // Puts the best `kept` of items [from, to) here, unsorted, and no more than as many others. What is worse than what
  // the lanes say, or does not beat the worst of the last best, is passed over, in blocks.
  void find(const SortRow<T>& row, int64_t from, int64_t to, int64_t kept) {
    constexpr int64_t block = 64;
    int64_t many = 0, room = 2 * kept + block;
    items.resize(size_t(room + block));
    auto shrink = [&] {
      if (many <= kept) return;
      std::nth_element(items.begin(), items.begin() + (kept - 1), items.begin() + many);
      many = kept;
    };
    Key limit = least_of_lanes(row, from, to, kept, least);
    bool none = limit == Key(~Key(0));  // then the first are taken as they come
    limit = none ? limit : Key(limit + 1);
    int64_t i = from;
    if (none) {
      for (; i < to && i < from + kept; ++i)
        items[size_t(many++)] = Item::of(SortKey<T>::of(row.x[i], row.descending), i);
      if (i < to) limit = std::max_element(items.begin(), items.begin() + many)->key();
    }
    while (i < to) {
      int64_t end = std::min(to, i + block);
      Key keys[block];
      Key least_here = Key(~Key(0));
      auto form = [&](auto elements) {
        for (int64_t k = 0; k < elements; ++k) {
          keys[k] = SortKey<T>::of(row.x[i + k], row.descending);
          least_here = keys[k] < least_here ? keys[k] : least_here;
        }
      };
      end - i == block ? form(std::integral_constant<int64_t, block>()) : form(end - i);
      if (least_here < limit) {
        Item* to_item = items.data();
        for (int64_t k = 0; k < end - i; ++k) {  // without a branch
          to_item[many] = Item::of(keys[k], i + k);
          many += keys[k] < limit;
        }
        if (many >= room) shrink(), limit = items[size_t(kept - 1)].key();
      }
      i = end;
    }
    if (many > 2 * kept) shrink();
    items.resize(size_t(many));
  }
};

// Tasks of neighboring rows, few enough that each may have memory of its own.
template <class Body>
void for_rows(const Executor& executor, int64_t rows, int64_t cost, const Body& body) {
  int64_t tasks = std::min(rows, std::max<int64_t>(16, 8 * executor.threads)), each = ceil_div(rows, tasks);
  parallel_for(executor, ceil_div(rows, each), each * cost,
               [&](int64_t task) { body(task * each, std::min(rows, (task + 1) * each)); });
}

// Into how many parts a row is cut: one where rows suffice for all threads.
inline int64_t row_parts(const Executor& executor, int64_t rows, int64_t count) {
  if (executor.threads == 1 || rows >= executor.threads || count < (1 << 16)) return 1;
  return std::min(4 * executor.threads, count >> 14);
}

template <class T>
void sort_best(const Executor& executor, const T* x, T* values, int32_t* indices, const SortShape& shape) {
  int64_t parts = row_parts(executor, shape.rows, shape.count), length = ceil_div(shape.count, parts);
  if (parts == 1)
    return for_rows(executor, shape.rows, shape.count, [&](int64_t first, int64_t last) {
      Best<T> best;
      for (int64_t r = first; r < last; ++r) {
        auto row = sort_row(x, values, indices, shape, r);
        best.find(row, 0, shape.count, shape.kept);
        std::sort(best.items.begin(), best.items.end());
        row.write(best.items.data(), 0, shape.kept);
      }
    });
  std::vector<Best<T>> found(static_cast<size_t>(parts));
  for (int64_t r = 0; r < shape.rows; ++r) {
    auto row = sort_row(x, values, indices, shape, r);
    parallel_for(executor, parts, length, [&](int64_t part) {
      found[size_t(part)].find(row, std::min(part * length, shape.count), std::min((part + 1) * length, shape.count),
                               shape.kept);
    });
    std::vector<typename Best<T>::Item> best;
    for (auto& some : found) best.insert(best.end(), some.items.begin(), some.items.end());
    std::sort(best.begin(), best.end());
    row.write(best.data(), 0, shape.kept);
  }
}

template <class Item, class T>
void sort_row_by_all(const Executor& executor, const SortRow<T>& row, const SortShape& shape, int64_t parts) {
  int64_t length = ceil_div(shape.count, parts), kept = ceil_div(shape.kept, parts);
  Items<Item> items(shape.count), other(shape.count);
  parallel_for(executor, parts, length,
               [&](int64_t part) { row.read(items.get(), part * length, std::min(shape.count, (part + 1) * length)); });
  const Item* sorted = sort_items(executor, items.get(), other.get(), shape.count, parts);
  parallel_for(executor, parts, kept,
               [&](int64_t part) { row.write(sorted, part * kept, std::min(shape.kept, (part + 1) * kept)); });
}

}  // namespace internal

template <class T>
Status sort_rows(Executor executor, const T* x, T* values, int32_t* indices, SortShape shape) {
  using Key = typename SortKey<T>::Key;
  using internal::KeyAlone, internal::KeyAndPosition, internal::Items;
  if (shape.rows * shape.kept == 0) return {};
  if (shape.kept * 8 <= shape.count) {
    internal::sort_best(executor, x, values, indices, shape);
    return {};
  }
  int64_t parts = internal::row_parts(executor, shape.rows, shape.count), cost = 16 * shape.count;
  if (parts > 1) {
    for (int64_t r = 0; r < shape.rows; ++r) {
      auto row = internal::sort_row(x, values, indices, shape, r);
      row.plain = internal::are_plain(row.x, shape.count, shape.descending);
      if (row.plain && !indices)
        internal::sort_row_by_all<KeyAlone<Key>>(executor, row, shape, parts);
      else
        internal::sort_row_by_all<KeyAndPosition<Key>>(executor, row, shape, parts);
    }
    return {};
  }
  internal::for_rows(executor, shape.rows, cost, [&](int64_t first, int64_t last) {
    Items<KeyAndPosition<Key>> items(2 * shape.count);
    for (int64_t r = first; r < last; ++r) {
      auto row = internal::sort_row(x, values, indices, shape, r);
      row.plain = internal::are_plain(row.x, shape.count, shape.descending);
      auto sort_as = [&](auto* memory) {
        row.read(memory, 0, shape.count);
        row.write(internal::sort_items(memory, memory + shape.count, shape.count), 0, shape.kept);
      };
      if (row.plain && !indices)
        sort_as(reinterpret_cast<KeyAlone<Key>*>(items.get()));
      else
        sort_as(items.get());
    }
  });
  return {};
}

}  // namespace baracuda
