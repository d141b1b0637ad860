// The histogram pattern on CPU threads. A worker finds the bins of a block of cells, and then counts them in tables of
// its own. Where rows are few and long they are cut, and the tables added.
#pragma once

#include <vector>

#include "histogram.h"
#include "search_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int count_block = 512;

// ---------------------------------------------------------------------------------------------------------------------
// The bins of up to count_block cells of one row, `bins` for none

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

// Edges as keys. Nothing is too low for the first bin or too high for the last one. NaN may come one behind the last.
template <class T>
struct BlockOfEdges {
  using Key = WideKey<T>;
  const BinOfEdges<T>& functor;
  Bins<T> bins;
  std::vector<Key> keys, low, high;

  BlockOfEdges(const BinOfEdges<T>& functor, int64_t row) : functor(functor), bins(functor.of_row(row)) {
    keys.resize(size_t(bins.count + 1));
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = bins.edge(int64_t(i));
    if (!bins.uniform) return;
    low = keys, low.front() = 0;
    high.assign(keys.begin() + 1, keys.end()), high.back() = Key(~Key(0)), high.push_back(high.back());
  }

  void find(int64_t row, int64_t first, int64_t length, int32_t* bin) const {
    const T* x = functor.x + row * functor.count + first;
    if (bins.uniform ? !find_uniform(x, length, bin) : !find_by_search(x, length, bin))
      for (int64_t i = 0; i < length; ++i) {
        int64_t b = bins.of(x[i]);
        bin[i] = int32_t(b < 0 ? bins.count : b);
      }
  }

 private:
  // A guess may be off by one. False if one is by more.
  bool find_uniform(const T* x, int64_t length, int32_t* bin) const {
    using Value = Comparable<T>;
    const Key *below = low.data(), *above = high.data(), least = keys.front(), most = keys.back();
    const Value from = bins.low, scale = bins.scale, last = Value(bins.count - 1);
    const int32_t none = int32_t(bins.count), top = none - 1;
    int32_t wrong = 0;
    for (int64_t i = 0; i < length; ++i) {
      Key key = SortKey<T>::of(x[i], false);
      Value place = (Value(x[i]) - from) * scale;
      place = place > Value(0) ? place : Value(0);
      place = place < last ? place : last;
      int32_t b = std::min(int32_t(place), top);  // `last` may be rounded up
      b += key >= above[b];
      b -= key < below[b];
      bool inside = (key >= least) & (key <= most);
      wrong |= int32_t(inside & ((key >= above[b]) | (key < below[b])));
      bin[i] = inside ? b : none;
    }
    return !wrong;
  }

  bool find_by_search(const T* x, int64_t length, int32_t* bin) const {
    search_keys<true, T>(keys.data(), int64_t(keys.size()), x, length, bin);
    const Key most = keys.back();
    const int32_t none = int32_t(bins.count);
    bool ends_with_nan = keys.back() == SortKey<T>::all;
    for (int64_t i = 0; i < length; ++i) {
      int32_t place = !ends_with_nan && Key(SortKey<T>::of(x[i], false)) == most ? none : bin[i];
      bin[i] = place > 0 && place <= none ? place - 1 : none;
    }
    return true;
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

// Cells that follow one another go to different tables: a count would wait for the one before, were it in the same
// place. What has no bin is counted behind the last.
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
  // A part is long beside the table that it needs.
  int64_t parts = std::max<int64_t>(1, std::min(executor.threads, shape.count / std::max(4 * shape.bins, steps)));
  if (shape.rows >= executor.threads || parts == 1) {
    int64_t stretch = steps / (shape.count + shape.bins) + 1;
    parallel_for(executor, ceil_div(shape.rows, stretch), stretch * (shape.count + shape.bins), [&](int64_t task) {
      Tables tables(shape.bins);
      for (int64_t row = task * stretch; row < std::min(shape.rows, (task + 1) * stretch); ++row) {
        if (row > task * stretch) tables.clear();
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
