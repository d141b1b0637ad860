// The histogram pattern on CPU threads. A worker finds the bins of a block of elements, and then counts them in tables
// of its own. Where rows are few and long they are cut, and the tables added.
#pragma once

#include <vector>

#include "histogram.h"
#include "search_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int count_block = 512;

// ---------------------------------------------------------------------------------------------------------------------
// The bins of up to count_block elements of one row, `bins` for none

template <class I>
struct BlockOfIds {
  const BinOfId<I>& functor;
  BlockOfIds(const BinOfId<I>& functor, int64_t) : functor(functor) {}

  void find(int64_t row, int64_t first, int64_t length, int32_t* bin) const {
    const I* x = functor.x + row * functor.count + first;
    using Unsigned = std::make_unsigned_t<I>;
    Unsigned bins = Unsigned(functor.bins);
    for (int64_t i = 0; i < length; ++i) bin[i] = int32_t(std::min(Unsigned(x[i]), bins));
  }
};

// Edges as keys. Uniform ones are found by a guess that is the bin or the one before, as it rises with the value and is
// the one before at each edge. Edges that are too near to each other for that are searched.
template <class T>
struct BlockOfEdges {
  using Key = WideKey<T>;
  using Value = Comparable<T>;
  const BinOfEdges<T>& functor;
  Bins<T> bins;
  std::vector<Key> keys, ends;  // ends: where each bin ends; the last one never does
  bool guessed;

  BlockOfEdges(const BinOfEdges<T>& functor, int64_t row) : functor(functor), bins(functor.of_row(row)) {
    keys.resize(size_t(bins.count + 1));
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = bins.edge(int64_t(i));
    guessed = bins.uniform && bins.count < 1 << 20;
    for (int64_t i = 1; guessed && i <= bins.count; ++i) guessed = guess(bins.edges[i], bins) == i - 1;
    if (guessed) ends.assign(keys.begin() + 1, keys.end()), ends.back() = Key(~Key(0)), ends.push_back(ends.back());
  }

  void find(int64_t row, int64_t first, int64_t length, int32_t* bin) const {
    const T* x = functor.x + row * functor.count + first;
    guessed ? find_by_guess(x, length, bin) : find_by_search(x, length, bin);
  }

 private:
  static int32_t guess(T x, const Bins<T>& bins) {
    Value position = (Value(x) - bins.low) * bins.scale - Value(0.5), last = Value(bins.count - 1);
    position = position > Value(0) ? position : Value(0);
    return int32_t(position < last ? position : last);
  }

  void find_by_guess(const T* x, int64_t length, int32_t* bin) const {
    const Bins<T> all = bins;
    const Key *ends = this->ends.data(), least = keys.front(), most = keys.back();
    for (int64_t i = 0; i < length; ++i) bin[i] = guess(x[i], all);
    for (int64_t i = 0; i < length; ++i) {
      Key key = wide_key(x[i]);
      int32_t b = bin[i] + (key >= ends[bin[i]]);
      bin[i] = ((key >= least) & (key <= most)) ? b : int32_t(all.count);
    }
  }

  void find_by_search(const T* x, int64_t length, int32_t* bin) const {
    search_keys<true, T>(keys.data(), int64_t(keys.size()), x, length, bin);
    const Key most = keys.back();
    const int32_t none = int32_t(bins.count);
    bool ends_with_nan = keys.back() == SortKey<T>::all;
    for (int64_t i = 0; i < length; ++i) {
      int32_t position = !ends_with_nan && wide_key(x[i]) == most ? none : bin[i];
      bin[i] = position > 0 && position <= none ? position - 1 : none;
    }
  }
};

template <class I>
BlockOfIds<I> block_of(const BinOfId<I>& functor, int64_t row) {
  return {functor, row};
}
template <class T>
BlockOfEdges<T> block_of(const BinOfEdges<T>& functor, int64_t row) {
  return {functor, row};
}

// ---------------------------------------------------------------------------------------------------------------------
// Tables

// Elements that follow one another go to different tables: a count would wait for the one before, were it in the same
// position. What has no bin is counted after the last.
class Tables {
 public:
  explicit Tables(int64_t bins) : bins_(bins), counts_(size_t((bins <= 4096 ? ways : 1) * (bins + 1))) {}

  void clear() { std::fill(counts_.begin(), counts_.end(), 0); }

  template <class Block>
  void count(const Block& block, int64_t row, int64_t first, int64_t last) {
    int32_t bin[count_block];
    int32_t* table[ways];
    for (int k = 0; k < ways; ++k) table[k] = counts_.data() + (bins_ <= 4096 ? k * (bins_ + 1) : 0);
    for (; first < last; first += count_block) {
      int64_t length = std::min<int64_t>(count_block, last - first), i = 0;
      block.find(row, first, length, bin);
      for (; i + ways <= length; i += ways)
        for (int k = 0; k < ways; ++k) ++table[k][bin[i + k]];
      for (; i < length; ++i) ++table[0][bin[i]];
    }
  }

  void write(int32_t* counts) const {
    std::copy_n(counts_.data(), bins_, counts);
    for (size_t at = size_t(bins_ + 1); at < counts_.size(); at += size_t(bins_ + 1)) add(counts_.data() + at, counts);
  }
  void add_to(int32_t* counts) const {
    for (size_t at = 0; at < counts_.size(); at += size_t(bins_ + 1)) add(counts_.data() + at, counts);
  }

 private:
  static constexpr int ways = 4;
  void add(const int32_t* from, int32_t* counts) const {
    for (int64_t b = 0; b < bins_; ++b) counts[b] += from[b];
  }

  int64_t bins_;
  std::vector<int32_t> counts_;
};

}  // namespace internal

template <class Functor>
Status count_bins(Executor executor, const Functor& functor, int32_t* counts, CountShape shape) {
  using namespace internal;
  constexpr int64_t steps = 1 << 15;
  if (shape.rows * shape.bins == 0) return {};
  // A part is long compared with the table that it needs.
  int64_t parts = std::max<int64_t>(1, std::min(executor.threads, shape.count / std::max(4 * shape.bins, steps)));
  if (shape.rows >= executor.threads || parts == 1) {
    int64_t range = steps / (shape.count + shape.bins) + 1;
    parallel_for(executor, ceil_div(shape.rows, range), range * (shape.count + shape.bins), [&](int64_t task) {
      Tables tables(shape.bins);
      for (int64_t row = task * range; row < std::min(shape.rows, (task + 1) * range); ++row) {
        if (row > task * range) tables.clear();
        tables.count(block_of(functor, row), row, 0, shape.count);
        tables.write(counts + row * shape.bins);
      }
    });
    return {};
  }
  std::vector<Tables> tables(size_t(shape.rows * parts), Tables(shape.bins));
  int64_t length = ceil_div(shape.count, parts);
  parallel_for(executor, shape.rows * parts, length, [&](int64_t task) {
    int64_t row = task / parts, first = task % parts * length;
    tables[size_t(task)].count(block_of(functor, row), row, first, std::min(first + length, shape.count));
  });
  for (int64_t row = 0; row < shape.rows; ++row) {
    tables[size_t(row * parts)].write(counts + row * shape.bins);
    for (int64_t part = 1; part < parts; ++part) tables[size_t(row * parts + part)].add_to(counts + row * shape.bins);
  }
  return {};
}

}  // namespace baracuda
