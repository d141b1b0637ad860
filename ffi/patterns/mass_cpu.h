// The mass pattern on CPU threads: each row's masses are added by levels of probability, which say in which levels the
// wanted prefixes end. Only the tokens of these are sorted.
#pragma once

#include <algorithm>
#include <vector>

#include "../kernels/sampling.h"
#include "sort_cpu.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// One row at a time, and memory for it.
template <class T, class Mass>
class TokenSampler {
 public:
  using Key = typename SortKey<T>::Key;
  using Item = KeyAndPosition<Key>;

  explicit TokenSampler(const SamplingRows<T>& rows) : rows_(rows) {}

  void run(int64_t row) {
    constexpr int64_t few = 256;
    const T* x = rows_.x + row * rows_.count;
    float largest = float(SortKey<T>::number(first_key(x), true));
    if (!has_mass<Mass>(largest)) return rows_.write_none(row);
    Mass mass = rows_.template mass<Mass>(row, largest);
    TokenDraw draw = rows_.draw(row);
    items_.clear();
    if (rows_.count <= few) {
      for (int64_t i = 0; i < rows_.count; ++i) add(x, i);
      sort();
      sums_.resize(items_.size());
      uint64_t sum = 0;
      for (size_t i = 0; i < items_.size(); ++i) sums_[i] = sum += mass.mass(value(items_[i]));
      return write(row, mass, draw, draw.k - 1, sum);
    }
    add_levels(x, mass);
    LevelPrefixes prefixes(masses_.data(), counts_.data());
    prefixes.reaching(draw.point(draw.kept(prefixes.total(), prefixes)));
    for (int64_t i = 0; i < rows_.count; ++i)
      if (prefixes.noted.has(levels_[size_t(i)])) add(x, i);
    sort();
    sum_up(mass, prefixes);
    int64_t kth = rows_.count;
    if (int64_t level = prefixes.level_of(draw.k); draw.k && level < mass_levels - 1)
      kth = prefixes.position(draw.k, level) + first_index(int64_t(items_.size()), [&](int64_t i) {
              return mass.level(value(items_[size_t(i)])) >= level;
            });
    write(row, mass, draw, kth, prefixes.total());
  }

 private:
  static float value(const Item& item) { return float(SortKey<T>::number(item.key(), true)); }

  Key first_key(const T* x) const {
    Key first = Key(~Key(0));
    for (int64_t i = 0; i < rows_.count; ++i) {
      Key key = SortKey<T>::of(x[i], true);
      first = key < first ? key : first;
    }
    return first;
  }

  void add(const T* x, int64_t i) { items_.push_back(Item::of(SortKey<T>::of(x[i], true), i)); }
  void sort() {
    other_.resize(items_.size());
    if (sort_items(items_.data(), other_.data(), int64_t(items_.size())) != items_.data()) items_.swap(other_);
  }

  // The sums up to and with each level.
  void add_levels(const T* x, const Mass& mass) {
    constexpr int64_t chunk = 512;
    masses_.assign(mass_levels, 0), counts_.assign(mass_levels, 0), levels_.resize(size_t(rows_.count));
    uint64_t masses[chunk];
    for (int64_t first = 0; first < rows_.count; first += chunk) {
      int64_t count = std::min(chunk, rows_.count - first);
      uint16_t* levels = &levels_[size_t(first)];
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) levels[i] = uint16_t(mass.level(float(x[first + i])));
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) masses[i] = mass.mass(float(x[first + i]));
      for (int64_t i = 0; i < count; ++i) masses_[levels[i]] += masses[i], ++counts_[levels[i]];
    }
    for (size_t i = 1; i < mass_levels; ++i) masses_[i] += masses_[i - 1], counts_[i] += counts_[i - 1];
  }

  // The sums up to and with each item. The first of a level comes after all tokens of the levels before.
  void sum_up(const Mass& mass, const LevelPrefixes& prefixes) {
    sums_.resize(items_.size());
    int64_t last = -1;
    uint64_t sum = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      int64_t level = mass.level(value(items_[i]));
      if (level != last) sum = prefixes.mass_before(level), last = level;
      sums_[i] = sum += mass.mass(value(items_[i]));
    }
  }

  void write(int64_t row, const Mass& mass, const TokenDraw& draw, int64_t kth, uint64_t total) const {
    ListPrefixes list{sums_.data(), int64_t(sums_.size()), kth, total};
    uint64_t kept = draw.kept(total, list).low;
    rows_.write(row, mass, items_[size_t(list.index(draw.point(kept)))].position(), kept);
  }

  const SamplingRows<T>& rows_;
  std::vector<uint64_t> masses_, sums_;
  std::vector<uint32_t> counts_;
  std::vector<uint16_t> levels_;
  std::vector<Item> items_, other_;
};

}  // namespace internal

template <class Mass, class T>
Status sample_tokens(const Executor& executor, const SamplingRows<T>& rows) {
  constexpr int64_t steps = 1 << 12;
  if (rows.rows * rows.count == 0) return {};
  int64_t range = steps / rows.count + 1;
  parallel_for(executor, ceil_div(rows.rows, range), 16 * range * rows.count, [&](int64_t task) {
    internal::TokenSampler<T, Mass> sampler(rows);
    for (int64_t row = task * range; row < std::min((task + 1) * range, rows.rows); ++row) sampler.run(row);
  });
  return {};
}

template <class Mass, class T>
Status add_mass_digits(const Executor& executor, const MassDigits<T>& rows) {
  constexpr int digits = MassDigits<T>::digits;
  parallel_for(executor, rows.rows, 8 * rows.count + digits, [&](int64_t row) {
    const T* x = rows.x + row * rows.count;
    Mass mass = rows.template mass<Mass>(row);
    uint32_t prefix = rows.keys_of(row)[1], counts[digits] = {};
    uint64_t masses[digits] = {};
    for (int64_t i = 0; i < rows.count; ++i) {
      int32_t digit = rows.digit(float(x[i]), prefix, rows.shift);
      if (digit >= 0) masses[digit] += mass.mass(float(x[i])), ++counts[digit];
    }
    uint32_t* sums = rows.sums + row * 3 * digits;
    for (int i = 0; i < digits; ++i)
      sums[i] = uint32_t(masses[i]), sums[digits + i] = uint32_t(masses[i] >> 32), sums[2 * digits + i] = counts[i];
  });
  return {};
}

}  // namespace baracuda
